import Foundation
import SystemIO
import TestSupport

/// What `classify` says of one entry of a device.
struct ClassifiedEntry {
  /// The logical path.
  let path: ByteString
  /// Where it is.
  let realPath: ByteString
  let type: String
  /// `-` for a container's root, which has none.
  let dataClass: String
  /// What becomes of it in a backup that is not encrypted: always, when-changed or never.
  let backup: String
  /// What a backup does with it: kept, bare or left-out.
  let stored: String
  /// What a restore does with it.
  let restore: String

  /// Whether the policy keeps it for its own sake.
  var isKept: Bool { backup != "never" }

  fileprivate init(_ object: [String: Any]) throws {
    func text(_ name: String) throws -> String {
      guard let value = object[name] as? String else {
        throw Program.Failure(description: "classify says no '\(name)': \(object)")
      }
      return value
    }
    guard let path = object.path(), let realPath = object.path("real_path") else {
      throw Program.Failure(description: "classify says no path: \(object)")
    }
    (self.path, self.realPath) = (path, realPath)
    type = try text("type")
    dataClass = object["class"] is NSNull ? "-" : try text("class")
    stored = try text("stored")
    restore = object["restore"] as? String ?? "-"
    if let byDestination = object["backup"] as? [String: String] {
      backup = byDestination["unencrypted"] ?? byDestination["default"] ?? ""
    } else {
      backup = try text("backup")
    }
  }
}

extension CommandLine {
  /// What `classify` says of each entry of a device; of the user's own when `device` is nil.
  func classification(of device: String?) throws -> [ClassifiedEntry] {
    let root = device.map { " --root \($0)" } ?? ""
    return try jsonLines("classify --json --for unencrypted\(root)")
      .map { try ClassifiedEntry($0) }
  }

  /// The containers of a device as `apps` tells them: what they are called, where they are, and the
  /// JSON itself.
  func containers(
    of device: String?
  ) throws -> [(path: ByteString, realPath: ByteString, json: [String: Any])] {
    let answer = try json("apps --json\(device.map { " --root \($0)" } ?? "")")
    return (answer["containers"] as? [[String: Any]] ?? []).compactMap { container in
      guard let path = container.path(), let real = container.path("real_path") else { return nil }
      return (path, real, container)
    }
  }
}

extension [String: Any] {
  /// A path of a JSON answer: its bytes in base 64 where it is not UTF-8.
  func path(_ name: String = "path") -> ByteString? {
    if let encoded = self[name + "_b64"] as? String {
      return Data(base64Encoded: encoded).map { ByteString($0) }
    }
    return (self[name] as? String).map { ByteString($0) }
  }
}

extension ByteString {
  /// The path one component up; empty for a path of one component.
  var directoryPath: ByteString {
    let slash = UInt8(ascii: "/")
    guard let last = bytes.lastIndex(of: slash) else { return "" }
    return ByteString(bytes[..<last])
  }
}
