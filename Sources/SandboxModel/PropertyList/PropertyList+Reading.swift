internal import SystemIO

extension PropertyList {
  /// What a property list may cost; more is refused.
  public struct Limits: Hashable, Sendable {
    /// Bytes of the file.
    public var bytes: Int
    /// Arrays and dictionaries inside one another.
    public var depth: Int
    /// Values and keys in all, each counted as often as it is referred to.
    public var objects: Int

    /// Makes limits; the defaults suit any property list that an app's container should hold.
    public init(bytes: Int = 16 << 20, depth: Int = 64, objects: Int = 1_000_000) {
      self.bytes = bytes
      self.depth = depth
      self.objects = objects
    }
  }

  static let reading = "read the property list"

  /// Reads an XML or a binary property list, whichever the bytes are.
  public init(reading bytes: [UInt8], limits: Limits = Limits()) throws(ModelError) {
    guard bytes.count <= limits.bytes else {
      throw ModelError(
        .limit, Self.reading,
        "it has \(bytes.count) bytes, and at most \(limits.bytes) are read")
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
