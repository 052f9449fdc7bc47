//! Third-party NBD clients: nbdinfo, nbdcopy, qemu-io, fio.

use std::fs;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::{SMALL, SMALL_BYTES, Server, finish, headtime, noise, run, scratch, serve};
use crate::support;

/// Returns from a test, with a note, if a program that it needs is missing.
macro_rules! needs_program {
    ($name:literal, $($program:literal),*) => {
        if let Some(why) = support::missing_program(&[$($program),*]) {
            return support::skipped($name, &why);
        }
    };
}

#[test]
fn nbdinfo_shows_what_the_drive_is() {
    needs_program!("nbdinfo_shows_what_the_drive_is", "nbdinfo");
    let dir = scratch("nbdinfo");
    let server = Server::disk(dir.path());
    let info = run(Command::new("nbdinfo").arg("--json").arg(server.uri("")));
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!((&info["protocol"], &info["TLS"]), (&"newstyle-fixed".into(), &false.into()), "{info}");
    assert_eq!(info["structured"], true, "{info}");
    let e = &info["exports"][0];
    assert_eq!((&e["export-name"], &e["export-size"]), (&"".into(), &SMALL_BYTES.into()), "{e}");
    assert_eq!(e["description"], "A small drive for tests", "{e}");
    let sizes = ["block_size_minimum", "block_size_preferred", "block_size_maximum"].map(|k| e[k].as_u64());
    assert_eq!(sizes, [Some(512), Some(4096), Some(32 << 20)], "{e}");
    let yes = ["is_rotational", "can_flush", "can_fua", "can_multi_conn", "can_df"];
    let no = ["is_read_only", "can_trim", "can_zero", "can_fast_zero", "can_cache"];
    for (flags, expected) in [(&yes, true), (&no, false)] {
        for flag in flags {
            assert_eq!(e[flag], expected, "{flag}: {e}");
        }
    }
    server.stop();
}

#[test]
fn nbdinfo_lists_the_exports_of_a_server() {
    needs_program!("nbdinfo_lists_the_exports_of_a_server", "nbdinfo");
    let dir = scratch("nbdinfo-list");
    let server = Server::start(dir.path(), serve(dir.path()));
    let list = run(Command::new("nbdinfo").args(["--list", "--json"]).arg(server.uri("")));
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let found: Vec<_> = list["exports"].as_array().unwrap().iter().collect();
    let of = |i: usize| (found[i]["export-name"].as_str().unwrap(), found[i]["export-size"].as_u64().unwrap());
    assert_eq!((of(0), of(1)), (("data", 16 << 20), ("archive", SMALL_BYTES - (16 << 20))));
    assert_eq!((&found[0]["is_read_only"], &found[1]["is_read_only"]), (&false.into(), &true.into()));
    let (status, _, err) = finish(Command::new("nbdinfo").arg(server.uri("nothing")));
    assert!(!status.success() && err.contains("nothing"), "{err}");
    server.stop();
}

#[test]
fn an_image_copied_in_comes_out_the_same() {
    needs_program!("an_image_copied_in_comes_out_the_same", "nbdcopy");
    let dir = scratch("nbdcopy");
    let (image, copy) = (dir.path().join("image"), dir.path().join("copy"));
    let data = noise(8 << 20, 1);
    fs::write(&image, &data).unwrap();
    let server = Server::disk(dir.path());
    run(Command::new("nbdcopy").arg("--flush").arg(&image).arg(server.uri("")));
    // With a restart in between: the data read is the data stored.
    server.stop();
    let server = Server::disk(dir.path());
    run(Command::new("nbdcopy").arg(server.uri("")).arg(&copy));
    let found = fs::read(&copy).unwrap();
    assert_eq!(found.len() as u64, SMALL_BYTES);
    assert!(found[..data.len()] == data, "the image changed");
    assert!(found[data.len()..].iter().all(|b| *b == 0), "what was never written is not zero");
    server.stop();
}

#[test]
fn patterns_of_qemu_io_are_read_as_they_were_written() {
    needs_program!("patterns_of_qemu_io_are_read_as_they_were_written", "qemu-io");
    let dir = scratch("qemu-io");
    let server = Server::disk(dir.path());
    let io = |commands: &[&str], uri: &str| {
        let mut command = Command::new("qemu-io");
        command.args(["-f", "raw"]);
        for c in commands {
            command.args(["-c", c]);
        }
        finish(command.arg(uri))
    };
    let uri = server.uri("");
    let good = [
        "write -P 0xa5 0 64k",
        "write -f -P 0x5a 65536 4k",
        "aio_write -P 0x11 1M 1M",
        "aio_flush",
        "flush",
        "read -P 0xa5 0 64k",
        "read -P 0x5a 64k 4k",
        "read -P 0x11 1M 1M",
        "read -P 0 39M 512",
        // In pieces, across data written at once.
        "read -P 0xa5 512 1k",
        "readv -P 0x11 1048576 512 4096 65536",
    ];
    let (status, out, err) = io(&good, &uri);
    assert!(status.success(), "{out}{err}");
    assert!(!out.contains("failed") && !out.contains("verification"), "{out}");
    // Discard is not offered; qemu reports success without sending it, and the data is still there.
    let (status, out, err) = io(&["discard 0 64k", "read -P 0xa5 0 64k"], &uri);
    assert!(status.success() && !out.contains("verification"), "{out}{err}");
    // Beyond its end.
    let beyond = format!("read {SMALL_BYTES} 512");
    let (_, out, err) = io(&[&beyond], &uri);
    let said = out + &err;
    assert!(said.contains("failed") || said.contains("past end") || said.contains("Input/output error"), "{said}");
    assert!(server.stop().0.success());
}

#[test]
fn what_fio_writes_in_a_mixed_load_is_what_it_reads() {
    needs_program!("what_fio_writes_in_a_mixed_load_is_what_it_reads", "fio");
    let dir = scratch("fio");
    let server = Server::start(dir.path(), serve(dir.path()));
    let mut fio = Command::new("fio");
    fio.current_dir(dir.path()).args(["--name=mixed", "--ioengine=nbd", "--rw=randrw", "--bsrange=4k-64k"]);
    fio.args(["--size=16M", "--io_size=6M", "--iodepth=8", "--verify=crc32c", "--verify_fatal=1", "--fsync=16"]);
    fio.args(["--output-format=json", "--uri"]).arg(server.uri("data"));
    let report = run(&mut fio);
    let report: serde_json::Value = serde_json::from_str(&report[report.find('{').unwrap()..]).unwrap();
    let job = &report["jobs"][0];
    assert_eq!(job["error"], 0, "{job}");
    assert!(job["read"]["total_ios"].as_u64() > Some(50) && job["write"]["total_ios"].as_u64() > Some(50), "{job}");
    assert!(server.stop().0.success());
}

#[test]
fn libnbd_reads_and_writes_under_tls() {
    needs_program!("libnbd_reads_and_writes_under_tls", "nbdinfo", "nbdcopy");
    let dir = scratch("tls");
    let at = |name: &str| dir.path().join(name);
    let own = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(at("ca-cert.pem"), params.self_signed(&own).unwrap().pem()).unwrap();
    let authority = Issuer::new(params, own);
    for who in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let names = vec!["127.0.0.1".to_string(), "localhost".to_string()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        fs::write(at(&format!("{who}-cert.pem")), certificate.pem()).unwrap();
        fs::write(at(&format!("{who}-key.pem")), key.serialize_pem()).unwrap();
    }
    let config = format!(
        "[disk]\ndrive = \"{SMALL}\"\nbacking = \"disk.img\"\n[listen]\nnbd = [\"tcp:127.0.0.1:0\", \
         \"unix:nbd.sock\"]\ntls = {{ certificate = \"server-cert.pem\", key = \"server-key.pem\", clients = \
         \"ca-cert.pem\" }}\n[[export]]\nname = \"data\"\n"
    );
    fs::write(at("serve.toml"), config).unwrap();
    let mut command = headtime();
    command.arg("serve").arg(at("serve.toml"));
    let server = Server::start(dir.path(), command);
    let said = server.said();
    let uri = said.lines().find_map(|l| l.split_once("clients: ").filter(|c| c.1.starts_with("nbds://"))).unwrap().1;
    let with_own = format!("{uri}?tls-certificates={}", dir.path().display());
    let info = run(Command::new("nbdinfo").arg("--json").arg(&with_own));
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!((&info["TLS"], &info["exports"][0]["export-size"]), (&true.into(), &SMALL_BYTES.into()), "{info}");
    let data = noise(3 << 20, 5);
    fs::write(at("image"), &data).unwrap();
    run(Command::new("nbdcopy").arg("--flush").arg(at("image")).arg(&with_own));
    run(Command::new("nbdcopy").arg(&with_own).arg(at("copy")));
    assert!(fs::read(at("copy")).unwrap()[..data.len()] == data, "what is read is not what was written");
    // Without TLS, and without a client certificate: refused.
    fs::create_dir(at("stranger")).unwrap();
    fs::copy(at("ca-cert.pem"), at("stranger/ca-cert.pem")).unwrap();
    let stranger = format!("{uri}?tls-certificates={}", at("stranger").display());
    for uri in [uri.replacen("nbds", "nbd", 1), stranger] {
        let (status, out, _) = finish(Command::new("nbdinfo").arg("--size").arg(&uri));
        assert!(!status.success(), "{uri}: {out}");
    }
    // A client that can open the unix socket needs no certificate.
    assert_eq!(run(Command::new("nbdinfo").arg("--size").arg(server.uri("data"))).trim(), SMALL_BYTES.to_string());
    assert!(server.stop().0.success());
}
