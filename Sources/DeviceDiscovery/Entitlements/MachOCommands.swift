/// The load commands of a 64-bit Mach-O slice that are relevant for entitlements.
enum MachOCommands {
  static let headerSize = 32
  private static let segmentSize = 72
  private static let sectionSize = 80
  private static let segmentCommand: UInt32 = 0x19
  private static let signatureCommand: UInt32 = 0x1d
  private static let encryptionCommand: UInt32 = 0x2c

  /// The number of load commands in a header, and their size in bytes.
  struct Extent {
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
  struct Places {
    var signature: FileExtent?
    var section: FileExtent?
    var isEncrypted = false
  }

  /// Reads the commands.
  static func places(in commands: [UInt8], count: Int) -> Places {
    var places = Places()
    var at = 0
    for _ in 0..<count {
      guard let kind = commands.number32(at: at), let size = commands.number32(at: at + 4),
        size >= 8, Int(size) <= commands.count - at
      else { break }
      if kind == signatureCommand, let offset = commands.number32(at: at + 8),
        let length = commands.number32(at: at + 12)
      {
        places.signature = FileExtent(offset: UInt64(offset), length: UInt64(length))
      } else if kind == encryptionCommand, let system = commands.number32(at: at + 16) {
        places.isEncrypted = places.isEncrypted || system != 0
      } else if kind == segmentCommand {
        places.section = places.section ?? section(of: commands, from: at, to: at + Int(size))
      }
      at += Int(size)
    }
    return places
  }

  /// Returns the section `__TEXT,__entitlements` of a segment command.
  private static func section(of commands: [UInt8], from start: Int, to end: Int) -> FileExtent? {
    guard let count = commands.number32(at: start + 64) else { return nil }
    var at = start + segmentSize
    for _ in 0..<min(count, 255) {
      guard at + sectionSize <= end else { return nil }
      if name(commands, at) == "__entitlements", name(commands, at + 16) == "__TEXT",
        let length = commands.number64(at: at + 40), let offset = commands.number32(at: at + 48)
      {
        return FileExtent(offset: UInt64(offset), length: length)
      }
      at += sectionSize
    }
    return nil
  }

  private static func name(_ commands: [UInt8], _ at: Int) -> String {
    String(decoding: commands[at..<(at + 16)].prefix { $0 != 0 }, as: UTF8.self)
  }
}
