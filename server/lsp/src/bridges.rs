//! The IDE protocols of agents, or nothing in a build without them.

#[cfg(feature = "bridges")]
pub(crate) use sightline_bridges::Bridges;

#[cfg(not(feature = "bridges"))]
pub(crate) use self::none::Bridges;

#[cfg(not(feature = "bridges"))]
mod none {
    use std::sync::Arc;

    use sightline_engine::{services::Services, settings::Settings};

    /// Bridges that are never open.
    pub struct Bridges;

    #[allow(clippy::unused_self, reason = "the methods of the bridges")]
    impl Bridges {
        pub fn new(_services: &Arc<Services>, _on_open: fn(&Arc<Services>)) -> Arc<Self> {
            Arc::new(Self)
        }

        pub fn end_on_signal(&self, _end: impl Fn() + Send + Sync + 'static) {}

        pub fn configure(&self, _settings: &Settings) {}

        pub fn schedule_update(&self, _services: &Arc<Services>) {}

        pub fn close(&self) {}
    }
}
