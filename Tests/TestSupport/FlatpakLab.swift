package import Foundation
import SystemIO

/// A home with real Flatpak apps: installed from a repository built for the tests, and each run
/// once, so that they have data. Needs Shared's `lab/flatpak` and Debian's flatpak, ostree,
/// busybox-static and bubblewrap; does not touch this machine's own Flatpak.
package struct FlatpakLab: Sendable {
  /// The shared material that the lab needs.
  package static let material = "lab/flatpak"

  /// The home directory: `home` in the lab's directory.
  package let home: URL
  private let runtime: URL

  /// Creates a home in a directory with the given apps installed, and runs all of them, or those
  /// named.
  package init(
    in directory: TemporaryDirectory, apps: [String] = ["org.example.Hello"],
    running: [String]? = nil
  ) throws {
    home = directory.url.appendingPathComponent("home", isDirectory: true)
    runtime = directory.url.appendingPathComponent("runtime", isDirectory: true)
    _ = try Directory.make(path: directory.path("home"))
    _ = try Directory.make(path: directory.path("runtime"), permissions: 0o700)
    let work = directory.string + "/flatpak-lab"
    try succeed(["bash", Self.script("flatpak-lab.sh"), work] + apps)
    for app in running ?? apps { try succeed(["flatpak", "run", app]) }
  }

  /// Runs flatpak as the owner of the home. Returns its standard output.
  @discardableResult
  package func flatpak(_ arguments: [String]) throws -> String {
    try succeed(["flatpak"] + arguments)
  }

  private static func script(_ name: String) -> String {
    Shared.path("\(material)/\(name)")
  }

  @discardableResult
  private func succeed(_ command: [String]) throws -> String {
    let outcome = try Program.run(
      Self.script("dbusrun"), command,
      environment: [
        "HOME": home.path, "XDG_RUNTIME_DIR": runtime.path, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
      ], cleanEnvironment: true)
    guard outcome.code == 0 else {
      throw Program.Failure(
        description: "'\(command.joined(separator: " "))' ended with \(outcome.code): "
          + outcome.errors)
    }
    return outcome.output
  }
}
