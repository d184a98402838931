import Codecs
import SystemIO

@testable import ArchiveStore

/// The lines of a vector's `expected.txt`, whose header describes the columns.
enum GoldenLine {
  static func line(
    _ entry: TreeEntry, path: ByteString, detail: String,
    attributes: [(name: ByteString, value: [UInt8])] = []
  ) -> String {
    let shown = attributes.map { "\(escaped($0.name))=\(Blake2b.hash($0.value).hex.prefix(16))" }
    let nanoseconds = String(entry.modified.nanoseconds)
    let padding = String(repeating: "0", count: 9 - nanoseconds.count)
    return [
      kind(entry.node), String(entry.permissions, radix: 8), "\(entry.owner):\(entry.group)",
      "\(entry.modified.seconds)+.\(padding)\(nanoseconds)", detail,
      shown.isEmpty ? "-" : shown.joined(separator: ","), entry.linkGroup.map(escaped) ?? "-",
      escaped(path),
    ].joined(separator: "\t")
  }

  static func detail(_ node: Node) -> String {
    switch node {
    case .symlink(let target): escaped(target)
    case .characterDevice(let number), .blockDevice(let number): "\(number.major),\(number.minor)"
    case .directory, .fifo, .socket, .file: "-"
    }
  }

  private static func kind(_ node: Node) -> String {
    switch node {
    case .file: "file"
    case .directory: "directory"
    case .symlink: "link"
    case .fifo: "fifo"
    case .socket: "socket"
    case .characterDevice: "character"
    case .blockDevice: "block"
    }
  }

  /// Returns a name with the backslash and all bytes except printable ASCII as `\xNN`.
  private static func escaped(_ name: ByteString) -> String {
    name.bytes.map { byte in
      (0x20..<0x7f).contains(byte) && byte != 0x5c
        ? String(UnicodeScalar(byte)) : "\\x" + Hex.encode([byte])
    }.joined()
  }
}

/// A hash of a file's bytes that does not depend on holes: the hash over the number (eight bytes,
/// little-endian) and the hash of each block of 4,096 bytes that is not all zeros. The last block
/// is padded with zeros.
struct GoldenBlocks {
  private var sums: [UInt8] = []
  private var pending: [UInt8] = []
  private var number = 0

  private static let size = 4096
  private static let zeros = [UInt8](repeating: 0, count: size)
  private static let zeroDigest = Blake2b.hash(zeros)

  /// Adds bytes at an offset. Offsets must not decrease.
  mutating func add(_ bytes: [UInt8], at offset: Int) {
    if offset > number * Self.size + pending.count {
      if offset / Self.size > number {
        endBlock()
        number = offset / Self.size
      }
      pending += Self.zeros.prefix(offset % Self.size - pending.count)
    }
    pending += bytes
    var taken = 0
    while pending.count - taken >= Self.size {
      note(Array(pending[taken..<(taken + Self.size)]))
      taken += Self.size
    }
    pending.removeFirst(taken)
  }

  private mutating func endBlock() {
    if !pending.isEmpty { note(pending + Self.zeros.prefix(Self.size - pending.count)) }
    pending = []
  }

  private mutating func note(_ block: [UInt8]) {
    let digest = Blake2b.hash(block)
    if digest != Self.zeroDigest {
      LittleEndian.append(UInt64(number), to: &sums)
      digest.append(to: &sums)
    }
    number += 1
  }

  var digest: Digest {
    var last = self
    last.endBlock()
    return Blake2b.hash(last.sums)
  }
}
