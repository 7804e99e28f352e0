//! Writers that turn the wire types into schemas and client types.
