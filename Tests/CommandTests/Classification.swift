import Foundation
import SystemIO
import TestSupport

/// The answer of `classify` for one entry of a device.
struct ClassifiedEntry {
  /// The logical path.
  let path: ByteString
  /// The real path.
  let realPath: ByteString
  let type: String
  /// The data class; `-` for a container's root, which has none.
  let dataClass: String
  /// The policy decision for an unencrypted backup: always, when-changed or never.
  let backup: String
  /// How a backup stores it: the value of the JSON member `stored`.
  let stored: String
  /// The policy decision for a restore.
  let restore: String

  /// Whether the policy itself includes the entry.
  var isKept: Bool { backup != "never" }

  fileprivate init(_ object: [String: Any]) throws {
    func text(_ name: String) throws -> String {
      guard let value = object[name] as? String else {
        throw Program.Failure(description: "classify gives no '\(name)': \(object)")
      }
      return value
    }
    guard let path = object.path(), let realPath = object.path("real_path") else {
      throw Program.Failure(description: "classify gives no path: \(object)")
    }
    (self.path, self.realPath) = (path, realPath)
    type = try text("type")
    dataClass = object["class"] is NSNull ? "-" : try text("class")
    stored = try text("stored")
    restore = object["restore"] as? String ?? "-"
    if let byDestination = object["backup"] as? [String: String] {
      let destination = TestEncryption.isOn ? "default" : "unencrypted"
      backup = byDestination[destination] ?? byDestination["default"] ?? ""
    } else {
      backup = try text("backup")
    }
  }
}

extension CommandLine {
  /// Returns the answer of `classify` for each entry of a device, or of the user's own device if
  /// `device` is nil.
  func classification(of device: String?) throws -> [ClassifiedEntry] {
    let root = device.map { " --root \($0)" } ?? ""
    let destination = TestEncryption.isOn ? "" : " --for unencrypted"
    return try jsonLines("classify --json\(destination)\(root)")
      .map { try ClassifiedEntry($0) }
  }

  /// Returns the containers of a device as listed by `apps`: their logical paths, their real paths,
  /// and the JSON itself.
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
  /// Returns a path of a JSON answer, which is in Base64 unless it is UTF-8.
  func path(_ name: String = "path") -> ByteString? {
    if let encoded = self[name + "_b64"] as? String {
      return Data(base64Encoded: encoded).map { ByteString($0) }
    }
    return (self[name] as? String).map { ByteString($0) }
  }
}

extension ByteString {
  /// The path without its last component; empty for a path of one component.
  var directoryPath: ByteString {
    let slash = UInt8(ascii: "/")
    guard let last = bytes.lastIndex(of: slash) else { return "" }
    return ByteString(bytes[..<last])
  }
}
