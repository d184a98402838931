public import Foundation

/// Material that others wrote, which the project does not contain: in the directory that
/// `SANDBOXCTL_SHARED` names, else in `shared` beside the package's directory.
///
/// A test that needs some is written `@Test(.enabled(if: Shared.has("fixtures/uti")))`: where it is
/// absent the test is skipped, and a line that begins with `SKIPPED-SHARED:` says so, which
/// `.ci/run` takes for a failure on a machine that has the material.
public enum Shared {
  /// Where the material is looked for.
  public static let root: URL = {
    if let named = ProcessInfo.processInfo.environment["SANDBOXCTL_SHARED"], !named.isEmpty {
      return URL(fileURLWithPath: named, isDirectory: true)
    }
    return packageRoot.deletingLastPathComponent()
      .appendingPathComponent("shared", isDirectory: true)
  }()

  /// The directory of the package that these tests belong to.
  public static let packageRoot = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The directory or file at a path of the material; nil, after the line that says so, where it is
  /// absent.
  public static func directory(_ path: String) -> URL? {
    let found = root.appendingPathComponent(path)
    if FileManager.default.fileExists(atPath: found.path) { return found }
    // Written in one call, so that no other thread's output comes between.
    let line = "\nSKIPPED-SHARED: no \(path) in \(root.path) (set SANDBOXCTL_SHARED)\n"
    FileHandle.standardOutput.write(Data(line.utf8))
    return nil
  }

  /// Whether there is a directory or file at a path of the material; says so where not.
  public static func has(_ path: String) -> Bool { directory(path) != nil }

  /// The absolute path of something of the material, whether or not it is there.
  public static func path(_ path: String) -> String { root.appendingPathComponent(path).path }

  /// The whole content of a file of the material.
  public static func bytes(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: root.appendingPathComponent(path)))
  }
}
