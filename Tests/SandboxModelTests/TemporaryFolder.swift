import Foundation
import SandboxModel
import SystemIO

/// A folder of a test's own, removed with what is in it.
final class TemporaryFolder {
  let path: String

  init() throws {
    let above = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
    path = above.appendingPathComponent("sandbox-model-\(Host.randomHex(bytes: 8))").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var bytes: ByteString { ByteString(path) }

  func url(_ name: String) -> URL { URL(fileURLWithPath: path).appendingPathComponent(name) }

  /// Makes a folder and those above it.
  func folder(_ name: String) throws {
    try FileManager.default.createDirectory(at: url(name), withIntermediateDirectories: true)
  }

  /// Writes a file and makes the folders above it.
  func file(_ name: String, _ content: [UInt8] = []) throws {
    try FileManager.default.createDirectory(
      at: url(name).deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(content).write(to: url(name))
  }

  func file(_ name: String, _ content: String) throws { try file(name, Array(content.utf8)) }

  /// Writes a property list, binary or XML.
  func propertyList(_ name: String, _ value: PropertyList, isBinary: Bool = false) throws {
    try file(name, isBinary ? value.binary() : value.xml())
  }

  func link(_ name: String, to target: String) throws {
    try FileManager.default.createDirectory(
      at: url(name).deletingLastPathComponent(), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: url(name).path, withDestinationPath: target)
  }

  /// Makes a file of that size that takes no space.
  func sparse(_ name: String, size: UInt64) throws {
    try file(name)
    let handle = try FileHandle(forWritingTo: url(name))
    try handle.truncate(atOffset: size)
    try handle.close()
  }
}

extension PropertyList {
  /// A dictionary of strings and other values.
  static func of(_ members: [(ByteString, PropertyList)]) -> PropertyList {
    .dictionary(members.map { Member($0.0, $0.1) })
  }
}
