//! The built files of `clients/ui`, which contain no data.

/// A file and its type.
pub(crate) struct Asset {
    pub(crate) content_type: &'static str,
    pub(crate) content: &'static [u8],
}

/// The path at which a file of this machine opens the page. It is that of `/`.
pub(crate) const ENTRY: &str = "/open";

/// Returns the file at a path of the page.
pub(crate) fn find(path: &str) -> Option<Asset> {
    let (content_type, content): (_, &[u8]) = match path {
        "/" | "/index.html" | ENTRY => (
            "text/html; charset=utf-8",
            include_bytes!("../assets/index.html"),
        ),
        "/ui.js" => (
            "text/javascript; charset=utf-8",
            include_bytes!("../assets/ui.js"),
        ),
        "/ui.css" => (
            "text/css; charset=utf-8",
            include_bytes!("../assets/ui.css"),
        ),
        "/icon.svg" => ("image/svg+xml", include_bytes!("../assets/icon.svg")),
        _ => return None,
    };
    Some(Asset {
        content_type,
        content,
    })
}
