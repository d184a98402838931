public import SystemIO

/// The identifier of an app, an extension or a group, as the platform's own records give it.
///
/// It is compared by its bytes. It may come from a file that an app wrote, and layouts name
/// directories by it: so it is always one plain path component (`ByteString.nameFault`), whatever
/// its other bytes are.
public struct BundleIdentifier: Hashable, Comparable, Sendable {
  public let bytes: ByteString

  /// The most bytes that an identifier may have; Apple's own limit for app identifiers is 155.
  public static let maximumLength = 200

  /// Makes an identifier; nil if `fault(of:)` has a reason against it.
  public init?(_ bytes: ByteString) {
    guard Self.fault(of: bytes) == nil else { return nil }
    self.bytes = bytes
  }

  /// Why bytes are no identifier: they are no plain path component, one of this program's own names
  /// (`OwnNames`), or more than `maximumLength`.
  public static func fault(of bytes: ByteString) -> String? {
    if let fault = bytes.nameFault { return fault }
    if OwnNames.has(bytes) { return "it is a name of this program's own directories" }
    return bytes.count > maximumLength
      ? "it has \(bytes.count) bytes, more than the \(maximumLength) of an identifier" : nil
  }

  /// The parts between dots.
  public var components: [ArraySlice<UInt8>] {
    bytes.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
  }

  /// What follows the last dot: `Foo` of `org.gnome.Foo`.
  public var lastComponent: ByteString { ByteString(components.last ?? []) }

  /// Whether `other` is this identifier with further components: an app's extension, say.
  public func isPrefix(of other: BundleIdentifier) -> Bool {
    other.bytes.count > bytes.count && other.bytes.bytes.starts(with: bytes.bytes)
      && other.bytes.bytes[other.bytes.bytes.startIndex + bytes.count] == UInt8(ascii: ".")
  }

  public static func < (left: Self, right: Self) -> Bool { left.bytes < right.bytes }
}

extension BundleIdentifier: CustomStringConvertible {
  /// The identifier for a person, with escapes where it is not printable.
  public var description: String { bytes.description }
}
