internal import SystemIO

extension PropertyList {
  /// The limits for reading a property list.
  package struct Limits: Hashable, Sendable {
    /// The maximum size of the file in bytes.
    package var bytes: Int
    /// The maximum nesting depth of arrays and dictionaries.
    package var depth: Int
    /// The maximum number of values and keys, counted once for each reference.
    package var objects: Int

    /// Creates limits; the defaults are sufficient for property lists in an app's container.
    package init(bytes: Int = 16 << 20, depth: Int = 64, objects: Int = 1_000_000) {
      self.bytes = bytes
      self.depth = depth
      self.objects = objects
    }
  }

  static let reading = "read the property list"

  /// Reads an XML or binary property list.
  package init(reading bytes: [UInt8], limits: Limits = Limits()) throws(ModelError) {
    guard bytes.count <= limits.bytes else {
      throw ModelError(
        .limit, Self.reading,
        reason: "it has \(bytes.count) bytes, more than the limit of \(limits.bytes)")
    }
    if bytes.starts(with: BinaryPropertyListReader.magic) {
      var reader = try BinaryPropertyListReader(bytes, limits: limits)
      self = try reader.document()
    } else {
      var reader = try XMLPropertyListReader(bytes, limits: limits)
      self = try reader.document()
    }
  }
}
