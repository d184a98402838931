import SystemIO

@testable import RemoteStorage

extension Target {
  /// The answers of an SFTP server.
  static let sftpTargets = [Target(name: "sftp", run: sftp)]

  /// A stream of packets. It is delivered in two parts, divided at each of a few positions, with
  /// the same result.
  @Sendable private static func sftp(_ bytes: [UInt8]) {
    let whole = packets(of: [bytes[...]])
    for end in [1, 4, 5, bytes.count / 2] where end < bytes.count {
      require(
        packets(of: [bytes[..<end], bytes[end...]]) == whole,
        "the parts of a stream change a packet")
    }
    for case .reply(_, .handle(let handle)) in whole {
      require((1...256).contains(handle.bytes.count), "a handle has no valid length")
    }
    if let limits = try? SFTPLimits(bytes) {
      for piece in [limits.readPiece, limits.writePiece] {
        require((1024...SFTPLimits.pieceLimit).contains(piece), "a piece has no valid length")
      }
    }
    _ = try? VolumeSpace(statvfs: bytes)
    let ending = SFTPEnding(lines: [ByteString(bytes)], code: 255, wasConnected: false)
    require(
      ending.description.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7f },
      "a line of ssh has control characters")
  }

  /// Returns the packets before the first invalid one.
  private static func packets(of parts: [ArraySlice<UInt8>]) -> [SFTPPacket] {
    var (frames, found) = (SFTPFrames(), [SFTPPacket]())
    for part in parts {
      frames.append(part)
      while let packet = try? frames.next() {
        guard let decoded = try? SFTPPacket(packet) else { return found }
        found.append(decoded)
      }
    }
    return found
  }
}

/// The seeds of this target.
enum SFTPSeeds {
  static var all: [(target: String, bytes: [UInt8])] {
    [version, status, handle, data, names, attributes, limits].map { ("sftp", $0) }
  }

  private static func packet(_ body: [UInt8]) -> [UInt8] { [0, 0, 0, UInt8(body.count)] + body }

  private static let version = packet(
    [2, 0, 0, 0, 3, 0, 0, 0, 17] + Array("fsync@openssh.com".utf8) + [0, 0, 0, 1, 0x31])
  private static let status = packet(
    [101, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0, 7] + Array("Failure".utf8) + [0, 0, 0, 0])
  private static let handle = packet([102, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0])
  private static let data = packet([103, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6])
  private static let names = packet(
    [104, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0x61, 0, 0, 0, 1, 0x62, 0, 0, 0, 0])
  private static let attributes = packet(
    [105, 0, 0, 0, 1, 0x80, 0, 0, 0x0f, 0, 0, 0, 0, 0, 0, 1, 0]
      + [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0x81, 0x80, 0, 0, 0, 3, 0, 0, 0, 4]
      + [0, 0, 0, 1, 0, 0, 0, 1, 0x61, 0, 0, 0, 0])
  private static let limits: [UInt8] =
    [0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0xfc, 0, 0, 0, 0, 0, 0, 3, 0xfc, 0]
    + [0, 0, 0, 0, 0, 0, 3, 0xfb]
}
