import Foundation
import SystemIO
import TestSupport

/// A small volume in memory, mounted for a test.
struct SmallVolume {
  let path: String

  /// Whether this user may mount a volume.
  static let isPermitted: Bool = {
    guard Host.userID == 0, let directory = try? TemporaryDirectory("mount") else { return false }
    guard let volume = try? SmallVolume(at: directory.string + "/small", "size=1m") else {
      print("skipped: no volume can be mounted here")
      return false
    }
    volume.unmount()
    return true
  }()

  init(at path: String, _ options: String) throws {
    self.path = path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try mount(options)
  }

  /// Makes the mounted volume larger and keeps its contents.
  func grow(_ options: String) throws { try mount("remount," + options) }

  private func mount(_ options: String) throws {
    let outcome = try Program.run("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path])
    if outcome.code != 0 { throw Program.Failure(description: outcome.errors) }
  }

  func unmount() { _ = try? Program.run("umount", ["-l", path]) }
}
