//! The macro that makes the types and the table of methods.

macro_rules! methods {
    (
        requests { $(
            $(#[doc = $rdoc:literal])+
            $request:ident = $rname:literal: $rparams:ty => $rresult:ty, since $rsince:literal,
            fails { $($kind:ident: $when:expr),* $(,)? };
        )* }
        client_notifications { $(
            $(#[doc = $cdoc:literal])+
            $client:ident = $cname:literal: $cparams:ty, since $csince:literal;
        )* }
        server_requests { $(
            $(#[doc = $qdoc:literal])+
            $question:ident = $qname:literal: $qparams:ty => $qresult:ty, since $qsince:literal;
        )* }
        server_notifications { $(
            $(#[doc = $sdoc:literal])+
            $server:ident = $sname:literal: $sparams:ty, since $ssince:literal;
        )* }
    ) => {
        $(
            $(#[doc = $rdoc])+
            #[derive(Clone, Copy, Debug)]
            pub enum $request {}
            impl Request for $request {
                const NAME: &'static str = $rname;
                type Params = $rparams;
                type Result = $rresult;
            }
        )*
        $(
            $(#[doc = $cdoc])+
            #[derive(Clone, Copy, Debug)]
            pub enum $client {}
            impl Notification for $client {
                const NAME: &'static str = $cname;
                type Params = $cparams;
            }
        )*
        $(
            $(#[doc = $qdoc])+
            #[derive(Clone, Copy, Debug)]
            pub enum $question {}
            impl Request for $question {
                const NAME: &'static str = $qname;
                type Params = $qparams;
                type Result = $qresult;
            }
        )*
        $(
            $(#[doc = $sdoc])+
            #[derive(Clone, Copy, Debug)]
            pub enum $server {}
            impl Notification for $server {
                const NAME: &'static str = $sname;
                type Params = $sparams;
            }
        )*

        /// All methods of the protocol.
        pub const METHODS: &[Method] = &[
            $(Method {
                name: $rname,
                direction: Direction::Request,
                params: type_name(stringify!($rparams)),
                result: Some(type_name(stringify!($rresult))),
                summary: concat!($($rdoc),+).trim_ascii(),
                since: $rsince,
                errors: &[$((ErrorKind::$kind, $when)),*],
                params_schema: |generator| generator.subschema_for::<$rparams>(),
                result_schema: Some(|generator| generator.subschema_for::<$rresult>()),
            },)*
            $(Method {
                name: $cname,
                direction: Direction::ClientNotification,
                params: type_name(stringify!($cparams)),
                result: None,
                summary: concat!($($cdoc),+).trim_ascii(),
                since: $csince,
                errors: &[],
                params_schema: |generator| generator.subschema_for::<$cparams>(),
                result_schema: None,
            },)*
            $(Method {
                name: $qname,
                direction: Direction::ServerRequest,
                params: type_name(stringify!($qparams)),
                result: Some(type_name(stringify!($qresult))),
                summary: concat!($($qdoc),+).trim_ascii(),
                since: $qsince,
                errors: &[],
                params_schema: |generator| generator.subschema_for::<$qparams>(),
                result_schema: Some(|generator| generator.subschema_for::<$qresult>()),
            },)*
            $(Method {
                name: $sname,
                direction: Direction::ServerNotification,
                params: type_name(stringify!($sparams)),
                result: None,
                summary: concat!($($sdoc),+).trim_ascii(),
                since: $ssince,
                errors: &[],
                params_schema: |generator| generator.subschema_for::<$sparams>(),
                result_schema: None,
            },)*
        ];
    };
}
