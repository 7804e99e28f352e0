//! Comparisons with recordings of Cline.

mod file_tracker;
mod files_list;
mod ignore;
