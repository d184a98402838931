import Codecs
import Foundation
import SandboxModel
import SystemIO
import TestSupport

/// Files of test devices in a temporary directory.
extension TemporaryDirectory {
  /// Makes a directory and its parents.
  func makeDirectory(_ name: String) throws { _ = try Directory.make(path: path(ByteString(name))) }

  /// Writes a file and makes its parent directories.
  func file(_ name: String, _ content: [UInt8] = []) throws {
    try write(content, at: ByteString(name))
  }

  func file(_ name: String, _ content: String) throws { try file(name, Array(content.utf8)) }

  /// Writes a property list, binary or XML.
  func propertyList(_ name: String, _ value: PropertyList, isBinary: Bool = false) throws {
    try file(name, isBinary ? value.binary() : value.xml())
  }

  func link(_ name: String, to target: String) throws {
    let parts = ByteString(name).components
    guard let last = parts.last else { return }
    let above = parts.dropLast().reduce(path) { $0.appending($1) }
    try Directory.make(path: above).createLink(last, to: ByteString(target))
  }

  /// Makes a sparse file of the given size.
  func sparse(_ name: String, size: UInt64) throws {
    try file(name)
    let handle = try FileHandle(forWritingTo: url.appendingPathComponent(name))
    try handle.truncate(atOffset: size)
    try handle.close()
  }
}

extension PropertyList {
  /// Returns a dictionary of strings and other values.
  static func of(_ members: [(String, PropertyList)]) -> PropertyList {
    .dictionary(members.map { Member($0.0, $0.1) })
  }

  /// Returns a name, which must be UTF-8, as a string.
  static func name(_ name: ByteString) -> PropertyList {
    .string(String(decoding: name.bytes, as: UTF8.self))
  }
}
