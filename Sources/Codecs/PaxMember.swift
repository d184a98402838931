/// A member of a POSIX archive (pax, POSIX.1-2001) with all metadata of a file.
///
/// The header is a plain ustar header if everything fits. What does not fit (long names, fractions
/// of seconds, large numbers, extended attributes) is in an extended header before it. Names are
/// written byte for byte.
package struct PaxMember: Sendable, Hashable {
  /// The bytes of the name: relative, not empty, without NUL and without a trailing slash.
  package var path: [UInt8]
  package var kind: Kind
  /// The permission bits, at most 07777.
  package var mode: UInt16
  package var owner: UInt32 = 0
  package var group: UInt32 = 0
  /// The names of owner and group, which archive programs prefer to the numbers.
  package var userName = ""
  package var groupName = ""
  /// The modification time in seconds since 1970, with nanoseconds.
  package var modified: Int64 = 0
  package var nanoseconds: UInt32 = 0
  /// The extended attributes, stored with the prefix `SCHILY.xattr.` of GNU tar and bsdtar.
  package var attributes: [Attribute] = []

  /// An extended attribute.
  package struct Attribute: Sendable, Hashable {
    package var name: [UInt8]
    package var value: [UInt8]

    /// Creates an attribute.
    package init(name: [UInt8], value: [UInt8]) {
      self.name = name
      self.value = value
    }
  }

  /// The kinds of members.
  package enum Kind: Sendable, Hashable {
    /// A file with `size` bytes of content, which follow the header, padded.
    case file(size: UInt64)
    case directory
    case symbolicLink(target: [UInt8])
    /// A hard link to an earlier member.
    case hardLink(target: [UInt8])
    case fifo
    case characterDevice(major: UInt32, minor: UInt32)
    case blockDevice(major: UInt32, minor: UInt32)
  }

  /// Creates a member.
  package init(path: [UInt8], kind: Kind, mode: UInt16) {
    self.path = path
    self.kind = kind
    self.mode = mode
  }

  /// Returns the number of zeros after content of `size` bytes.
  package static func padding(after size: UInt64) -> Int {
    let rest = Int(size % UInt64(TarMember.blockSize))
    return rest == 0 ? 0 : TarMember.blockSize - rest
  }

  /// The end of an archive.
  package static let end = [UInt8](repeating: 0, count: TarMember.endSize)
}

extension PaxMember {
  var contentSize: UInt64 { if case .file(let size) = kind { size } else { 0 } }

  var linkTarget: [UInt8] {
    switch kind {
    case .symbolicLink(let target), .hardLink(let target): target
    default: []
    }
  }

  var device: (major: UInt32, minor: UInt32) {
    switch kind {
    case .characterDevice(let major, let minor), .blockDevice(let major, let minor):
      (major, minor)
    default: (0, 0)
    }
  }

  /// The name in the header, which ends with a slash for a directory.
  var headerPath: [UInt8] { kind == .directory ? path + [UInt8(ascii: "/")] : path }

  var typeFlag: UInt8 {
    switch kind {
    case .file: UInt8(ascii: "0")
    case .hardLink: UInt8(ascii: "1")
    case .symbolicLink: UInt8(ascii: "2")
    case .characterDevice: UInt8(ascii: "3")
    case .blockDevice: UInt8(ascii: "4")
    case .directory: UInt8(ascii: "5")
    case .fifo: UInt8(ascii: "6")
    }
  }
}
