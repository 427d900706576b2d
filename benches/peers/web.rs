//! A static page of nginx: dbbench against wrk and oha (connections kept) and ab (a connection for each request).

use super::support::{Ready, TestServer};
use super::{CONNECTIONS, Figure, SERVER_CPU, add, both, busy_while, peer, rounds, row, scenario};
use std::path::Path;

const PAGE: &str = "<html> <body> test </body> </html>\n";
/// So that ab's and ours end after about the same time.
const REQUESTS: u64 = 30_000;
const KEPT_REQUESTS: u64 = 200_000;

pub fn http() {
    let Some(server) = TestServer::start("taskset", Ready::Port, nginx) else {
        return println!("http: taskset is not installed: skipped");
    };
    let kept = ("kept", "keep_alive = true", KEPT_REQUESTS);
    let anew = ("anew", "http = \"1.0\", keep_alive = false", REQUESTS);
    compare(&server, ("wrk", wrk), kept);
    compare(&server, ("oha", oha), kept);
    compare(&server, ("ab", ab), anew);
}

/// One process, so that one core is all it has.
fn nginx(port: u16, directory: &Path) -> Vec<String> {
    let place = directory.display();
    let settings = format!(
        "daemon off; master_process off; worker_processes 1; pid {place}/pid; error_log {place}/error crit;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 1000000000; types {{ text/html html; }}\n\
         client_body_temp_path {place}/1; proxy_temp_path {place}/2; fastcgi_temp_path {place}/3; uwsgi_temp_path {place}/4; scgi_temp_path {place}/5;\n\
         server {{ listen 127.0.0.1:{port} backlog=1024; root {place}/htdocs; }} }}\n"
    );
    std::fs::create_dir(directory.join("htdocs")).expect("a directory for the page");
    std::fs::write(directory.join("htdocs/index.html"), PAGE).expect("the page");
    std::fs::write(directory.join("nginx.conf"), settings).expect("the settings");
    // Its workers give up root, and then read the page.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory, open).expect("a directory that nginx may read");
    [
        "-c",
        SERVER_CPU,
        "nginx",
        "-p",
        &place.to_string(),
        "-c",
        &format!("{place}/nginx.conf"),
    ]
    .map(str::to_owned)
    .to_vec()
}

fn ours(server: &TestServer, options: &str, requests: u64) -> Figure {
    scenario::run(&format!(
        "[targets.nginx]\ndriver = \"http\"\nendpoints = [\"http://127.0.0.1:{}\"]\noptions = {{ {options} }}\n\
         [operations.page]\nhttp = {{ method = \"GET\", path = \"/index.html\", expect = {{ status = 200 }} }}\n\
         [[phases]]\nname = \"requests\"\noperation = \"page\"\nthreads = {CONNECTIONS}\noperations = {requests}\n",
        server.port
    ))
}

/// wrk counts its time; it has no length by count.
fn wrk(server: &TestServer) -> Option<Figure> {
    let (threads, seconds) = ("-t1", "-d4s");
    let url = format!("http://127.0.0.1:{}/index.html", server.port);
    let arguments = [threads, &format!("-c{CONNECTIONS}"), seconds, &url].map(str::to_owned);
    let (text, cpu) = peer("wrk", &arguments)?;
    let line = text.lines().find(|line| line.contains("requests in"))?;
    let requests: f64 = line.split_whitespace().next()?.parse().ok()?;
    let rate = text.lines().find(|line| line.starts_with("Requests/sec"))?;
    Some(Figure {
        per_second: rate.split_whitespace().nth(1)?.parse().ok()?,
        cpu_us: cpu * 1e6 / requests,
    })
}

fn ab(server: &TestServer) -> Option<Figure> {
    let url = format!("http://127.0.0.1:{}/index.html", server.port);
    let counts = [
        "-q",
        "-n",
        &REQUESTS.to_string(),
        "-c",
        &CONNECTIONS.to_string(),
        &url,
    ];
    let (text, cpu) = peer("ab", &counts.map(str::to_owned))?;
    let rate = text
        .lines()
        .find(|line| line.starts_with("Requests per second"))?;
    Some(Figure {
        per_second: rate.split_whitespace().nth(3)?.parse().ok()?,
        cpu_us: cpu * 1e6 / REQUESTS as f64,
    })
}

/// Asks for JSON on its standard output; the rate is that of all requests.
fn oha(server: &TestServer) -> Option<Figure> {
    let url = format!("http://127.0.0.1:{}/index.html", server.port);
    let (requests, connections) = (KEPT_REQUESTS.to_string(), CONNECTIONS.to_string());
    let arguments = [
        "--no-tui",
        "--output-format",
        "json",
        "-n",
        &requests,
        "-c",
        &connections,
        &url,
    ];
    let (text, cpu) = peer("oha", &arguments.map(str::to_owned))?;
    let told: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(Figure {
        per_second: told["summary"]["requestsPerSec"].as_f64()?,
        cpu_us: cpu * 1e6 / KEPT_REQUESTS as f64,
    })
}

/// A row: dbbench with `options` against `theirs`, which is called `name`.
fn compare(
    server: &TestServer,
    (name, theirs): (&str, fn(&TestServer) -> Option<Figure>),
    (manner, options, requests): (&str, &str, u64),
) {
    let (mut throughput, mut cpu, mut busy) = Default::default();
    rounds(|first| {
        let mine = || busy_while(|| ours(server, options, requests));
        let ((mine, share), theirs) = both(first, mine, || theirs(server));
        add(
            &mut throughput,
            theirs.map(|theirs| mine.per_second / theirs.per_second),
        );
        add(&mut cpu, theirs.map(|theirs| mine.cpu_us / theirs.cpu_us));
        add(&mut busy, Some(share));
    });
    let cells = [
        (&*format!("throughput/{name}"), throughput.value()),
        (&*format!("CPU/{name}"), cpu.value()),
        ("server's core busy", busy.value()),
    ];
    row("http", PAGE.len() as u64, manner, &cells);
}
