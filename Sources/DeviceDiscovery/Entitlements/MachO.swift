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
  package struct Found: Equatable {
    package let source: EntitlementSource
    package let propertyList: [UInt8]
  }

  /// The data of an executable's slice.
  package struct Facts: Equatable {
    /// Its entitlements, those of the signature first.
    package var entitlements: [Found] = []
    /// Whether its code is encrypted for the device of its buyer (FairPlay).
    package var isEncrypted = false
  }

  /// Returns the entitlements of the first slice that has any, those of the signature first.
  package static func entitlements<Source: ByteSource & ~Copyable>(
    in source: borrowing Source
  ) throws(SystemError) -> [Found] {
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
    let header = try source.read(count: MachOCommands.headerSize, at: start)
    guard header.number32(at: 0) == thin64, let commands = MachOCommands.Extent(header) else {
      return Facts()
    }
    let at = start.addingReportingOverflow(UInt64(MachOCommands.headerSize))
    guard !at.overflow else { return Facts() }
    let bytes = try source.read(count: commands.size, at: at.partialValue)
    let places = MachOCommands.places(in: bytes, count: commands.count)
    var found = Facts(isEncrypted: places.isEncrypted)
    if let signature = places.signature,
      let list = try CodeSignature.entitlements(in: source, at: signature, from: start)
    {
      found.entitlements.append(Found(source: .signature, propertyList: list))
    }
    if let section = places.section,
      let list = try content(of: section, in: source, from: start), !list.isEmpty
    {
      found.entitlements.append(Found(source: .section, propertyList: list))
    }
    return found
  }

  /// Returns the bytes of an extent, or nil if it is too long or exceeds the file.
  static func content<Source: ByteSource & ~Copyable>(
    of extent: FileExtent, in source: borrowing Source, from start: UInt64
  ) throws(SystemError) -> [UInt8]? {
    let at = start.addingReportingOverflow(extent.offset)
    guard !at.overflow, at.partialValue <= UInt64(Int64.max),
      extent.length <= UInt64(Entitlements.limit)
    else { return nil }
    let bytes = try source.read(count: Int(extent.length), at: at.partialValue)
    return bytes.count == Int(extent.length) ? bytes : nil
  }
}

/// A range of bytes in a Mach-O slice, relative to the slice's start.
struct FileExtent: Equatable {
  let offset: UInt64
  let length: UInt64
}
