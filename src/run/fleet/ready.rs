//! Which endpoints of a target say that an instance is ready.

use crate::driver::Target;
use crate::driver::spec::{Endpoint, Transport};
use crate::engine::entry::OpenDriver;
use crate::op::Failure;
use crate::run::context::{Place, address};
use std::time::Duration;

/// Asks the target's driver at those endpoints that are this instance's; else at the server's, or at all where none can be
/// told to be.
pub fn driver_ready(
    driver: Option<&dyn OpenDriver>,
    target: &Target,
    place: &Place,
    instance: u32,
    limit: Duration,
) -> Result<(), Failure> {
    let Some(driver) = driver else { return Ok(()) };
    for endpoint in endpoints_at(place, instance, &target.endpoints) {
        driver.control(endpoint)?.ready(limit)?;
    }
    Ok(())
}

/// The endpoints that lie at one of the place's ports or in a directory of it, those of one instance where there are such;
/// all where none does.
fn endpoints_at<'e>(place: &Place, instance: u32, endpoints: &'e [Endpoint]) -> Vec<&'e Endpoint> {
    let is_here = |endpoint: &&Endpoint| match &endpoint.transport {
        Transport::Tcp { port, .. } => place.ports.values().any(|known| known == port),
        Transport::Unix { path } => place.directories.iter().any(|own| path.starts_with(own)),
        Transport::Directory { .. } | Transport::Nothing => false,
    };
    let own_address = address(instance).to_string();
    let is_own = |endpoint: &&&Endpoint| match &endpoint.transport {
        Transport::Tcp { host, .. } => *host == own_address,
        Transport::Unix { path } => path.starts_with(place.directory(instance)),
        Transport::Directory { .. } | Transport::Nothing => false,
    };
    let here: Vec<&Endpoint> = endpoints.iter().filter(is_here).collect();
    let own: Vec<&Endpoint> = here.iter().filter(is_own).copied().collect();
    match (own.is_empty(), here.is_empty()) {
        (false, _) if place.instances() > 1 => own,
        (_, false) => here,
        (_, true) => endpoints.iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn endpoint(transport: Transport) -> Endpoint {
        Endpoint {
            text: String::new(),
            label: String::new(),
            transport,
        }
    }

    fn tcp(port: u16) -> Endpoint {
        endpoint(Transport::Tcp {
            host: "127.0.0.1".to_owned(),
            port,
            addresses: Vec::new(),
        })
    }

    fn unix(path: &str) -> Endpoint {
        endpoint(Transport::Unix { path: path.into() })
    }

    fn place(directory: &str, port: u16) -> Place {
        Place {
            directories: vec![directory.into()],
            ports: BTreeMap::from([("main".to_owned(), port)]),
        }
    }

    #[test]
    fn a_server_is_asked_at_its_own_endpoints_only() {
        let endpoints = [
            tcp(20_001),
            tcp(20_002),
            unix("/run/a-1/sock"),
            unix("/run/a-10/sock"),
        ];
        let asked = |place: &Place| {
            endpoints_at(place, 1, &endpoints)
                .into_iter()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            asked(&place("/run/a-1", 20_002)),
            [tcp(20_002), unix("/run/a-1/sock")]
        );
        assert_eq!(asked(&place("/run/b-2", 20_001)), [tcp(20_001)]);
    }

    #[test]
    fn a_server_whose_endpoints_cannot_be_told_is_asked_at_all_of_them() {
        let endpoints = [tcp(20_001), unix("/tmp/sock")];
        assert_eq!(
            endpoints_at(&place("/run/c-3", 20_009), 1, &endpoints).len(),
            2
        );
    }

    #[test]
    fn one_of_several_instances_is_asked_at_its_own_address_or_else_where_its_server_is() {
        let endpoints = [
            endpoint(Transport::Tcp {
                host: "127.0.0.2".to_owned(),
                port: 20_002,
                addresses: Vec::new(),
            }),
            tcp(20_002),
            tcp(20_003),
        ];
        let mut place = place("/run/a-1.1", 20_002);
        place
            .directories
            .extend(["/run/a-1.2".into(), "/run/a-1.3".into()]);
        assert_eq!(endpoints_at(&place, 1, &endpoints), [&endpoints[1]]);
        assert_eq!(endpoints_at(&place, 2, &endpoints), [&endpoints[0]]);
        assert_eq!(
            endpoints_at(&place, 3, &endpoints),
            [&endpoints[0], &endpoints[1]]
        );
    }
}
