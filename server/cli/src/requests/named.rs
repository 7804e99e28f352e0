//! `sightline request`: any request, by its name.

use sightline_engine::{dispatch, error::Error, params_compat};

use super::{
    super::{DONE, conversations::read_stdin, print},
    IfSilent, Place, Requests,
};

#[derive(clap::Args)]
pub(crate) struct Request {
    #[command(flatten)]
    place: Place,
    /// Name of the request, with or without `sightline/`.
    #[arg(value_name = "METHOD")]
    method: String,
    /// Params as a JSON object, or `-` to read them from standard input.
    #[arg(value_name = "PARAMS", default_value = "{}")]
    params: String,
}

/// Runs a request, and prints its result as JSON.
pub(crate) fn run(request: Request) -> Result<i32, Error> {
    let method = full_name(&request.method)?;
    let text = match request.params.as_str() {
        "-" => read_stdin()?,
        given => given.to_owned(),
    };
    let params = params_compat::parse_object(method, Some(&text))?;
    let requests = Requests {
        if_silent: IfSilent::FailIfChanges,
        ..request.place.requests()
    };
    let result = requests.call_named(method, &params)?;
    print(&format!("{result}\n"))?;
    Ok(DONE)
}

/// Returns the name of a request on the wire.
fn full_name(given: &str) -> Result<&'static str, Error> {
    let is_named = |route: &&dispatch::Route| {
        route.name == given || route.name.strip_prefix("sightline/") == Some(given)
    };
    let named = dispatch::REQUESTS.iter().find(is_named);
    named.map(|route| route.name).ok_or_else(|| {
        Error::invalid(format!(
            "there is no request {given:?}; `sightline schema` lists the names"
        ))
    })
}
