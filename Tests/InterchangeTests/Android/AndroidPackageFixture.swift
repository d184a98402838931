import Codecs
import SystemIO
import TestSupport

@testable import Interchange

/// Builds packages of an Android app.
enum AndroidPackageFixture {
  typealias Element = BinaryXMLBuilder.Element
  typealias Attribute = BinaryXMLBuilder.Attribute

  /// The resource IDs of an application's attributes.
  static let allowBackup: UInt32 = 0x0101_0280
  static let backupAgent: UInt32 = 0x0101_027f
  static let fullBackupOnly: UInt32 = 0x0101_0473
  static let fullBackupContent: UInt32 = 0x0101_04eb
  static let dataExtractionRules: UInt32 = 0x0101_0632

  /// Returns a manifest with attributes of the application.
  static func manifest(
    _ attributes: [UInt32: BinaryXMLBuilder.Value], target: UInt32 = 34
  ) -> [UInt8] {
    let application = attributes.sorted { $0.key < $1.key }.map { number, value in
      Attribute(name: "attribute-\(number)", value: value, resource: number)
    }
    return BinaryXMLBuilder.build(
      Element(
        name: "manifest",
        attributes: [Attribute(name: "package", value: .text("com.example.notes"))],
        children: [
          Element(
            name: "uses-sdk",
            attributes: [
              Attribute(
                name: "targetSdkVersion", value: .typed(0x10, target), resource: 0x0101_0270)
            ]),
          Element(name: "application", attributes: application),
        ]))
  }

  /// Returns the binary form of a rules file.
  static func rules(_ name: String, _ children: [Element]) -> [UInt8] {
    BinaryXMLBuilder.build(Element(name: name, children: children))
  }

  /// Returns an element `include` or `exclude`.
  static func rule(_ name: String, _ domain: String, _ path: String) -> Element {
    Element(
      name: name,
      attributes: [
        Attribute(name: "domain", value: .text(domain)),
        Attribute(name: "path", value: .text(path)),
      ])
  }

  /// Returns a zip archive with the members in this order.
  static func zip(_ members: [(path: ByteString, content: [UInt8])]) throws -> [UInt8] {
    let output = Output()
    var sink = try ZipSink(to: output.write)
    for (path, content) in members {
      try sink.add(
        ForeignEntry(path: path.components, kind: .file(size: UInt64(content.count))))
      try content.withUnsafeBytes { try sink.write($0) }
    }
    try sink.finish()
    return output.bytes
  }

  private final class Output {
    var bytes: [UInt8] = []
    func write(_ span: Span<UInt8>) throws(InterchangeError) {
      for index in span.indices { bytes.append(span[index]) }
    }
  }
}
