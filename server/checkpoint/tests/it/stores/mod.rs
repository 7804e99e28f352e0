//! Stores that earlier versions wrote, and damaged ones.

mod damage;
mod groups;
mod loose;
mod old;
