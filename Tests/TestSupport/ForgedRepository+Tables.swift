internal import Codecs

extension ForgedRepository {
  /// The contents of a pack.
  static func contents(_ entries: [Entry]) -> [UInt8] {
    var bytes = [UInt8](repeating: 7, count: 16) + Array("sbxpack".utf8) + [0]
    LittleEndian.append(UInt32(1), to: &bytes)
    LittleEndian.append(UInt32(entries.count), to: &bytes)
    for entry in entries { append(entry, to: &bytes) }
    return bytes
  }

  /// An index object with the head and fan-out of its tables.
  static func encode(_ index: Index) -> [UInt8] {
    let sorted = index.entries.sorted { ($0.kind, $0.digest) < ($1.kind, $1.digest) }
    let counts = (0..<3).map { kind in sorted.count { Int($0.kind) == kind } }
    let bits = counts.map { count in (0...16).first { $0 == 16 || 16 << $0 >= count } ?? 16 }
    var bytes = Array("sbxindex".utf8)
    let frames = index.packs.reduce(0) { $0 + $1.frames.count }
    for number in [1, index.packs.count, frames, sorted.count] + counts {
      LittleEndian.append(UInt32(number), to: &bytes)
    }
    bytes += bits.map { UInt8($0) } + [UInt8](repeating: 0, count: 25)
    var first: UInt32 = 0
    for pack in index.packs {
      pack.id.append(to: &bytes)
      LittleEndian.append(pack.size, to: &bytes)
      LittleEndian.append(first, to: &bytes)
      LittleEndian.append(UInt32(pack.frames.count), to: &bytes)
      first += UInt32(pack.frames.count)
    }
    for frame in index.packs.lazy.flatMap(\.frames) {
      LittleEndian.append(frame.offset, to: &bytes)
      LittleEndian.append(frame.stored, to: &bytes)
      LittleEndian.append(frame.plain, to: &bytes)
    }
    for kind in 0..<3 {
      var slots = [UInt32](repeating: 0, count: 1 << bits[kind])
      for entry in sorted where Int(entry.kind) == kind {
        slots[Int(entry.digest.prefix) >> (16 - bits[kind])] += 1
      }
      var total: UInt32 = 0
      for slot in slots {
        total += slot
        LittleEndian.append(total, to: &bytes)
      }
    }
    for entry in sorted { append(entry, to: &bytes) }
    return bytes
  }

  private static func append(_ entry: Entry, to bytes: inout [UInt8]) {
    entry.digest.append(to: &bytes)
    LittleEndian.append(entry.pack, to: &bytes)
    LittleEndian.append(entry.frame, to: &bytes)
    bytes += [entry.kind, entry.flags]
    LittleEndian.append(entry.offset, to: &bytes)
    LittleEndian.append(entry.length, to: &bytes)
  }
}

/// The frames of a pack while it is forged.
struct ForgedPack {
  private(set) var bytes: [UInt8] = []
  private(set) var frames: [ForgedRepository.Frame] = []

  mutating func append(
    _ plain: [UInt8], with compressor: inout ZstdCompressor,
    _ change: (Int, inout [UInt8]) -> Void
  ) throws {
    var stored = try compressor.compress(plain)
    change(frames.count, &stored)
    frames.append(
      .init(
        offset: UInt64(bytes.count), stored: UInt32(stored.count), plain: UInt32(plain.count)))
    bytes += stored
  }

  func seekTable() -> [UInt8] {
    SeekTable(
      frames: frames.map { SeekTable.Frame(storedSize: $0.stored, contentSize: $0.plain) }
    ).encoded()
  }
}
