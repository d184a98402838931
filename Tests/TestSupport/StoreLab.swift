import Foundation
import Synchronization

/// A real object store on this machine, started once for all tests and ended with them.
///
/// Ceph and Swift are started by programs of Shared (`lab/s3`) from Debian's packages, moto by a
/// program of the tests from `make peers`. Without them the tests are skipped, which a line
/// reports.
package struct StoreLab: Sendable {
  /// The URL of the server.
  package let endpoint: String
  package let accessKey: String
  package let secret: String
  /// The keys of a second user, who may only read; nil if the store has no such user.
  package let reader: (accessKey: String, secret: String)?

  /// Ceph RGW, which checks signatures, hashes and conditions.
  package static let ceph: StoreLab? = {
    guard isInstalled(["radosgw", "ceph-mon", "ceph-osd"], "ceph-mon ceph-osd ceph-common radosgw")
    else { return nil }
    return start("ceph", port: 19000, keys: ("LABKEY", "LABSECRET"))
  }()

  /// OpenStack Swift with its S3 API, which does not support conditions. It needs root, and takes
  /// longer.
  package static let swift: StoreLab? = {
    guard Sampling.isWhole, geteuid() == 0,
      isInstalled(["swift-proxy-server", "memcached"], "swift-proxy swift-account swift-container")
    else { return nil }
    return start("swift", port: 19080, keys: ("test:tester", "testing"))
  }()

  /// moto with signatures checked.
  package static let moto: StoreLab? = {
    guard Peers.areInstalled else { return nil }
    let program = Shared.packageRoot.appendingPathComponent(
      "Tests/RemoteStorageTests/Programs/moto_store.py")
    guard let process = try? BoundProcess(Peers.python.path, [program.path]),
      let keys = try? JSONDecoder().decode([String].self, from: Data(process.firstLine.utf8)),
      keys.count == 5
    else { return nil }
    keep(process)
    return StoreLab(
      endpoint: "http://127.0.0.1:\(keys[0])", accessKey: keys[1], secret: keys[2],
      reader: (keys[3], keys[4]))
  }()

  private static let running = Mutex<[BoundProcess]>([])

  /// Keeps a process until the tests end.
  private static func keep(_ process: BoundProcess) {
    running.withLock { all in
      if all.isEmpty { atexit { StoreLab.endAll() } }
      all.append(process)
    }
  }

  private static func endAll() {
    running.withLock { all in for process in all { process.end() } }
  }

  private static func isInstalled(_ programs: [String], _ packages: String) -> Bool {
    if programs.allSatisfy(Program.exists), Shared.has("lab/s3") { return true }
    let line = "\nSKIPPED-STORE: tests with a real store need the packages \(packages)\n"
    FileHandle.standardOutput.write(Data(line.utf8))
    return false
  }

  /// Starts a store in a temporary directory; one that another test run has started is used. Its
  /// port is fixed, so two runs start it one after another.
  private static func start(
    _ name: String, port: Int, keys: (accessKey: String, secret: String)
  ) -> StoreLab? {
    let script = """
      exec 9>"${TMPDIR:-/tmp}/sandboxctl-store-$1.lock"; flock -w 300 9
      answers() { curl -s --noproxy '*' -m 5 -o /dev/null "http://127.0.0.1:$3/"; }
      if answers "$@"; then echo ready; exec 9>&-; cat >/dev/null; exit; fi
      d=$(mktemp -d "${TMPDIR:-/tmp}/sandboxctl-$1-XXXXXX")
      no_proxy=127.0.0.1 bash "$2/$1-up.sh" "$d" >"$d/up.log" 2>&1 9>&-
      if answers "$@"; then echo ready; else echo failed; fi
      cat >/dev/null
      bash "$2/$1-down.sh" "$d" 9>&-
      rm -rf "$d"
      """
    let words = ["-c", script, "sh", name, Shared.path("lab/s3"), "\(port)"]
    guard let process = try? BoundProcess("sh", words), process.firstLine == "ready" else {
      return nil
    }
    keep(process)
    return StoreLab(
      endpoint: "http://127.0.0.1:\(port)", accessKey: keys.accessKey, secret: keys.secret,
      reader: nil)
  }
}
