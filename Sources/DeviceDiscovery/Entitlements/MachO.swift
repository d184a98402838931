// Entitlements in an executable for Apple's platforms: the property list in its code signature, or
// the one in the section `__TEXT,__entitlements` of simulator builds.
//
// Thin 64-bit files and universal ones are read. All offsets in the file are checked against its
// size, all lengths against a limit; invalid ones count as "no entitlements" and not as an error,
// since an unreadable executable contains no information about groups. The signature is not
// verified. Layouts: Apple's <mach-o/loader.h>, <mach-o/fat.h> and <kern/cs_blobs.h>.
package import SandboxModel
package import SystemIO

/// Finds entitlements in Mach-O files.
package enum MachO {
  private static let thin64: UInt32 = 0xfeed_facf
  private static let universal: UInt32 = 0xcafe_babe
  private static let universal64: UInt32 = 0xcafe_babf
  private static let maximumSlices: UInt32 = 32

  /// An unparsed property list with entitlements, and its source.
  package struct FoundEntitlements: Equatable {
    package let source: App.EntitlementSource
    package let propertyList: [UInt8]
  }

  /// The data of an executable's slice.
  package struct Facts: Equatable {
    /// Its entitlements, those of the signature first.
    package var entitlements: [FoundEntitlements] = []
    /// Whether its code is encrypted for the device of its buyer (FairPlay).
    package var isEncrypted = false
  }

  /// Returns the entitlements of the first slice that has any, those of the signature first.
  package static func entitlements<Source: ByteSource & ~Copyable>(
    in source: borrowing Source
  ) throws(SystemError) -> [FoundEntitlements] {
    try facts(of: source).entitlements
  }

  /// Returns the data of the first slice with entitlements or, if there is none, whether any slice
  /// is encrypted.
  package static func facts<Source: ByteSource & ~Copyable>(
    of source: borrowing Source
  ) throws(SystemError) -> Facts {
    let head = try source.read(count: 8, at: 0)
    if head.number32(at: 0) == thin64 { return try slice(of: source, at: 0) }
    guard let magic = head.number32(at: 0, bigEndian: true),
      magic == universal || magic == universal64,
      let count = head.number32(at: 4, bigEndian: true), count <= maximumSlices
    else { return Facts() }
    var all = Facts()
    let size = magic == universal64 ? 32 : 20
    let table = try source.read(count: Int(count) * size, at: 8)
    for entry in stride(from: 0, to: Int(count) * size, by: size) {
      let offset =
        magic == universal64
        ? table.number64(at: entry + 8, bigEndian: true)
        : table.number32(at: entry + 8, bigEndian: true).map { UInt64($0) }
      guard let offset, offset > 0 else { continue }
      let found = try slice(of: source, at: offset)
      if !found.entitlements.isEmpty { return found }
      all.isEncrypted = all.isEncrypted || found.isEncrypted
    }
    return all
  }

  private static func slice<Source: ByteSource & ~Copyable>(
    of source: borrowing Source, at start: UInt64
  ) throws(SystemError) -> Facts {
    let header = try source.read(count: Commands.headerSize, at: start)
    guard header.number32(at: 0) == thin64, let commands = Commands.Size(header) else {
      return Facts()
    }
    let at = start.addingReportingOverflow(UInt64(Commands.headerSize))
    guard !at.overflow else { return Facts() }
    let bytes = try source.read(count: commands.size, at: at.partialValue)
    let extents = Commands.extents(in: bytes, count: commands.count)
    var found = Facts(isEncrypted: extents.isEncrypted)
    if let signature = extents.signature,
      let list = try CodeSignature.entitlements(in: source, at: signature, from: start)
    {
      found.entitlements.append(FoundEntitlements(source: .signature, propertyList: list))
    }
    if let section = extents.section,
      let list = try content(of: section, in: source, from: start), !list.isEmpty
    {
      found.entitlements.append(FoundEntitlements(source: .section, propertyList: list))
    }
    return found
  }

  /// Returns the bytes of an extent, or nil if it is too long or exceeds the file.
  static func content<Source: ByteSource & ~Copyable>(
    of extent: Extent, in source: borrowing Source, from start: UInt64
  ) throws(SystemError) -> [UInt8]? {
    let at = start.addingReportingOverflow(extent.offset)
    guard !at.overflow, at.partialValue <= UInt64(Int64.max),
      extent.length <= UInt64(Entitlements.limit)
    else { return nil }
    let bytes = try source.read(count: Int(extent.length), at: at.partialValue)
    return bytes.count == Int(extent.length) ? bytes : nil
  }
}

// MARK: - Parts of a file

extension MachO {
  /// A range of bytes in a Mach-O slice, relative to the slice's start.
  struct Extent: Equatable {
    let offset: UInt64
    let length: UInt64
  }

  /// The load commands of a 64-bit Mach-O slice that are relevant for entitlements.
  enum Commands {
    static let headerSize = 32
    private static let segmentSize = 72
    private static let sectionSize = 80
    private static let segmentCommand: UInt32 = 0x19
    private static let signatureCommand: UInt32 = 0x1d
    private static let encryptionCommand: UInt32 = 0x2c

    /// The number of load commands in a header, and their size in bytes.
    struct Size {
      let count: Int
      let size: Int

      /// Reads a header, or returns nil for more than 4,096 commands or 1 MiB, which linkers do not
      /// produce.
      init?(_ header: [UInt8]) {
        guard let count = header.number32(at: 16), let size = header.number32(at: 20),
          count <= 4096, size <= 1 << 20
        else { return nil }
        self.count = Int(count)
        self.size = Int(size)
      }
    }

    /// The locations of the code signature and the entitlements section, and whether the code is
    /// encrypted.
    struct Extents {
      var signature: Extent?
      var section: Extent?
      var isEncrypted = false
    }

    /// Reads the commands.
    static func extents(in commands: [UInt8], count: Int) -> Extents {
      var extents = Extents()
      var at = 0
      for _ in 0..<count {
        guard let kind = commands.number32(at: at), let size = commands.number32(at: at + 4),
          size >= 8, Int(size) <= commands.count - at
        else { break }
        if kind == signatureCommand, let offset = commands.number32(at: at + 8),
          let length = commands.number32(at: at + 12)
        {
          extents.signature = Extent(offset: UInt64(offset), length: UInt64(length))
        } else if kind == encryptionCommand, let system = commands.number32(at: at + 16) {
          extents.isEncrypted = extents.isEncrypted || system != 0
        } else if kind == segmentCommand {
          extents.section =
            extents.section ?? section(of: commands, from: at, to: at + Int(size))
        }
        at += Int(size)
      }
      return extents
    }

    /// Returns the section `__TEXT,__entitlements` of a segment command.
    private static func section(of commands: [UInt8], from start: Int, to end: Int) -> Extent? {
      guard let count = commands.number32(at: start + 64) else { return nil }
      var at = start + segmentSize
      for _ in 0..<min(count, 255) {
        guard at + sectionSize <= end else { return nil }
        if name(commands, at) == "__entitlements", name(commands, at + 16) == "__TEXT",
          let length = commands.number64(at: at + 40), let offset = commands.number32(at: at + 48)
        {
          return Extent(offset: UInt64(offset), length: length)
        }
        at += sectionSize
      }
      return nil
    }

    private static func name(_ commands: [UInt8], _ at: Int) -> String {
      String(decoding: commands[at..<(at + 16)].prefix { $0 != 0 }, as: UTF8.self)
    }
  }

  /// The embedded code signature of a Mach-O slice: a "super blob" of blobs with big-endian
  /// numbers.
  enum CodeSignature {
    private static let superBlob: UInt32 = 0xfade_0cc0
    private static let entitlementsBlob: UInt32 = 0xfade_7171
    private static let entitlementsSlot: UInt32 = 5
    private static let maximumBlobs: UInt32 = 256

    /// Returns the property list of the entitlements, or nil if the signature has none or is
    /// damaged.
    static func entitlements<Source: ByteSource & ~Copyable>(
      in source: borrowing Source, at signature: Extent, from start: UInt64
    ) throws(SystemError) -> [UInt8]? {
      let head = try part(of: signature, at: 0, length: 12, in: source, from: start)
      guard head.number32(at: 0, bigEndian: true) == superBlob,
        let count = head.number32(at: 8, bigEndian: true), count <= maximumBlobs
      else { return nil }
      let index = try part(
        of: signature, at: 12, length: UInt64(count) * 8, in: source, from: start)
      for entry in stride(from: 0, to: Int(count) * 8, by: 8) {
        guard index.number32(at: entry, bigEndian: true) == entitlementsSlot,
          let offset = index.number32(at: entry + 4, bigEndian: true)
        else { continue }
        return try blob(of: signature, at: UInt64(offset), source, start)
      }
      return nil
    }

    private static func blob<Source: ByteSource & ~Copyable>(
      of signature: Extent, at offset: UInt64, _ source: borrowing Source, _ start: UInt64
    ) throws(SystemError) -> [UInt8]? {
      let head = try part(of: signature, at: offset, length: 8, in: source, from: start)
      guard head.number32(at: 0, bigEndian: true) == entitlementsBlob,
        let length = head.number32(at: 4, bigEndian: true), length > 8
      else { return nil }
      let content = try part(
        of: signature, at: offset + 8, length: UInt64(length) - 8, in: source, from: start)
      return content.count == Int(length) - 8 ? content : nil
    }

    /// Returns a range of the signature; empty if it is too long or exceeds the signature.
    private static func part<Source: ByteSource & ~Copyable>(
      of signature: Extent, at offset: UInt64, length: UInt64, in source: borrowing Source,
      from start: UInt64
    ) throws(SystemError) -> [UInt8] {
      guard offset <= signature.length, length <= signature.length - offset else { return [] }
      let extent = Extent(offset: signature.offset + offset, length: length)
      return try content(of: extent, in: source, from: start) ?? []
    }
  }
}

/// Random access to bytes: of a file, a compressed file or a test.
package protocol ByteSource: ~Copyable {
  /// Reads `count` bytes at `offset`. Returns fewer bytes only at the end.
  func read(count: Int, at offset: UInt64) throws(SystemError) -> [UInt8]
}

extension Descriptor: ByteSource {}

extension [UInt8] {
  /// Returns the unsigned number in the four bytes at `offset`, or nil beyond the end.
  func number32(at offset: Int, bigEndian: Bool = false) -> UInt32? {
    number(at: offset, size: 4, bigEndian: bigEndian).map { UInt32(truncatingIfNeeded: $0) }
  }

  /// Returns the unsigned number in the eight bytes at `offset`, or nil beyond the end.
  func number64(at offset: Int, bigEndian: Bool = false) -> UInt64? {
    number(at: offset, size: 8, bigEndian: bigEndian)
  }

  private func number(at offset: Int, size: Int, bigEndian: Bool) -> UInt64? {
    guard offset >= 0, offset <= count - size else { return nil }
    let field = self[offset..<(offset + size)]
    return bigEndian
      ? field.reduce(0) { $0 << 8 | UInt64($1) }
      : field.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}
