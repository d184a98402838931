package import Foundation

/// Third-party material that is not part of the project, in the directory `SANDBOXCTL_SHARED` or,
/// by default, in `shared` beside the package's directory.
///
/// A test that needs it is written `@Test(.enabled(if: Shared.has("fixtures/uti")))`: without the
/// material the test is skipped, and a line that begins with `SKIPPED-SHARED:` is printed, which
/// `.ci/run` treats as a failure on a machine that has the material.
package enum Shared {
  /// The directory of the material.
  package static let root: URL = {
    if let named = ProcessInfo.processInfo.environment["SANDBOXCTL_SHARED"], !named.isEmpty {
      return URL(fileURLWithPath: named, isDirectory: true)
    }
    return packageRoot.deletingLastPathComponent()
      .appendingPathComponent("shared", isDirectory: true)
  }()

  /// The directory of the package with these tests.
  package static let packageRoot = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The directory or file at a path of the material, or nil, after printing the line, if it is
  /// absent.
  package static func directory(_ path: String) -> URL? {
    let found = root.appendingPathComponent(path)
    if FileManager.default.fileExists(atPath: found.path) { return found }
    // Written in one call, so that no other thread's output comes in between.
    let line = "\nSKIPPED-SHARED: no \(path) in \(root.path) (set SANDBOXCTL_SHARED)\n"
    FileHandle.standardOutput.write(Data(line.utf8))
    return nil
  }

  /// Whether the material has a directory or file at a path; prints the line if not.
  package static func has(_ path: String) -> Bool { directory(path) != nil }

  /// The absolute path of a part of the material, which need not exist.
  package static func path(_ path: String) -> String { root.appendingPathComponent(path).path }

  /// The complete content of a file of the material.
  package static func bytes(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: root.appendingPathComponent(path)))
  }
}
