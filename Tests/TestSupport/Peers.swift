package import Foundation

/// Third-party programs, from the Python package index, that read the program's exports.
///
/// `make peers` installs them (Tools/peers.sh), and `make test-all` does so first. A suite that
/// needs them is written `@Suite(.enabled(if: Peers.areInstalled))`: without them it is skipped,
/// and a line that begins with `SKIPPED-PEERS:` is printed, which `.ci/run` treats as a failure.
package enum Peers {
  /// The Python interpreter that has their packages.
  package static let python = Shared.packageRoot.appendingPathComponent(".build-peers/bin/python")

  /// Whether they are installed completely; prints the line if not.
  package static var areInstalled: Bool {
    let mark = Shared.packageRoot.appendingPathComponent(".build-peers/installed")
    if FileManager.default.fileExists(atPath: mark.path) { return true }
    let line = "\nSKIPPED-PEERS: no .build-peers (run 'make peers')\n"
    FileHandle.standardOutput.write(Data(line.utf8))
    return false
  }
}
