import Foundation
import Testing

/// Material that others wrote, beside the checkout or where `SANDBOXCTL_SHARED` says.
enum SharedMaterial {
  static let folder: URL = {
    if let named = ProcessInfo.processInfo.environment["SANDBOXCTL_SHARED"] {
      return URL(fileURLWithPath: named)
    }
    let checkout = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    return checkout.deletingLastPathComponent().appendingPathComponent("shared")
  }()

  /// Whether `path` is there; says which material is missing when it is not.
  static func has(_ path: String) -> Bool {
    let found = FileManager.default.fileExists(atPath: folder.appendingPathComponent(path).path)
    if !found { print("skipped: no \(path) in \(folder.path) (set SANDBOXCTL_SHARED)") }
    return found
  }

  static func bytes(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: folder.appendingPathComponent(path)))
  }
}

/// Programs that some tests need.
enum Tools {
  /// Whether all are in `/usr/bin`; says which are missing when they are not.
  static func have(_ names: [String]) -> Bool {
    let missing = names.filter { !FileManager.default.isExecutableFile(atPath: "/usr/bin/" + $0) }
    if !missing.isEmpty { print("skipped: no \(missing.joined(separator: ", ")) in /usr/bin") }
    return missing.isEmpty
  }
}
