public import SystemIO

/// The place of an object in a storage: a few plain components, never absolute, never upwards.
public struct ObjectPath: Hashable, Sendable {
  /// The names from the storage's root down.
  public let components: [ByteString]

  /// The storage's root itself.
  public static let root = ObjectPath(unchecked: [])

  private init(unchecked components: [ByteString]) { self.components = components }

  /// Makes a path of a text such as `packs/ab`, or nothing of one with an empty component, `.`,
  /// `..` or a NUL.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let components = parts.map { ByteString(String($0)) }
    guard components.allSatisfy(Self.isPlain) else { return nil }
    self.components = components
  }

  /// The path of a child. A name that is not one plain component is taken with its slashes and
  /// dots made underlines, so that no name leads anywhere else.
  public func appending(_ name: ByteString) -> ObjectPath {
    if Self.isPlain(name) { return ObjectPath(unchecked: components + [name]) }
    let harmless = name.bytes.map { $0 == 0x2f || $0 == 0x2e || $0 == 0 ? 0x5f : $0 }
    return ObjectPath(unchecked: components + [ByteString(harmless.isEmpty ? [0x5f] : harmless)])
  }

  /// The directory that holds it; the root's is the root.
  public var directory: ObjectPath { ObjectPath(unchecked: Array(components.dropLast())) }

  /// The last component; the root's is `.`.
  public var name: ByteString { components.last ?? "." }

  private static func isPlain(_ name: ByteString) -> Bool {
    !name.isEmpty && name != "." && name != ".." && !name.bytes.contains { $0 == 0x2f || $0 == 0 }
  }
}

extension ObjectPath: CustomStringConvertible {
  /// The components joined by slashes.
  public var description: String {
    components.isEmpty ? "." : components.map(\.description).joined(separator: "/")
  }
}
