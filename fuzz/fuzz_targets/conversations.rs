#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sightline_hostile::conversations::run(bytes));
