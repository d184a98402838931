import SystemIO
import Testing

@testable import RemoteStorage

/// The encoding and decoding of packets.
struct SFTPProtocolTests {
  private let handle = SFTPHandle(bytes: [7, 8])

  @Test func requestsHaveTheBytesOfTheDraft() {
    let open = SFTPRequest.open(
      path: "a/b", flags: [.write, .create, .exclusive], permissions: 0o600)
    #expect(
      open.packet(0x0102_0304)
        == [0, 0, 0, 24, 3, 1, 2, 3, 4, 0, 0, 0, 3, 0x61, 0x2f, 0x62, 0, 0, 0, 0x2a]
        + [0, 0, 0, 4, 0, 0, 1, 0x80])
    #expect(
      SFTPRequest.write(handle, offset: 1 << 32, bytes: [1, 2, 3][1...]).packet(1)
        == [0, 0, 0, 25, 6, 0, 0, 0, 1, 0, 0, 0, 2, 7, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 2, 3])
    #expect(
      SFTPRequest.read(handle, offset: 5, count: 9).packet(1)
        == [0, 0, 0, 23, 5, 0, 0, 0, 1, 0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9])
    let rename = SFTPRequest.renameReplacing("a", to: "b").packet(1)
    #expect(rename[4] == 200)
    #expect(rename.suffix(10).elementsEqual([0, 0, 0, 1, 0x61, 0, 0, 0, 1, 0x62]))
    #expect(SFTPRequest.setSize(handle, 0).packet(1).count == 4 + 5 + 6 + 12)
  }

  /// Names are bytes, and are sent unchanged.
  @Test func pathsAreSentByteForByte() {
    let name = ByteString([0xff, 0x0a, 0x2f, 0x80])
    #expect(SFTPRequest.remove(name).packet(1).suffix(4).elementsEqual(name.bytes))
  }

  static let answers: [(bytes: [UInt8], packet: SFTPPacket)] = [
    ([101, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0, 1, 0x78, 0, 0, 0, 0], status(9, .failure, "x")),
    ([101, 0, 0, 0, 9, 0, 0, 0, 1], status(9, .endOfFile, "")),
    ([101, 0, 0, 0, 9, 0, 0, 0, 99], status(9, .failure, "")),
    (
      [102, 0, 0, 0, 1, 0, 0, 0, 2, 7, 8],
      .reply(id: 1, .handle(SFTPHandle(bytes: [7, 8])))
    ),
    ([103, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6], .reply(id: 1, .data([5, 6]))),
    (
      [105, 0, 0, 0, 1, 0x80, 0, 0, 0x0f, 0, 0, 0, 0, 0, 0, 1, 0]
        + [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0x81, 0x80, 0, 0, 0, 3, 0, 0, 0, 4]
        + [0, 0, 0, 1, 0, 0, 0, 1, 0x61, 0, 0, 0, 0],
      .reply(
        id: 1, .attributes(SFTPAttributes(size: 256, mode: 0o100600, modified: 4, owner: 1)))
    ),
    (
      [104, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0x61, 0, 0, 0, 1, 0x62, 0, 0, 0, 0],
      .reply(id: 1, .names([SFTPName(name: "a", attributes: SFTPAttributes())]))
    ),
    ([201, 0, 0, 0, 1, 5], .reply(id: 1, .extended([5]))),
    (
      [2, 0, 0, 0, 3, 0, 0, 0, 17] + Array("fsync@openssh.com".utf8) + [0, 0, 0, 1, 0x31],
      .version(SFTPVersion(number: 3, extensions: [.sync]))
    ),
  ]

  private static func status(
    _ id: UInt32, _ code: SFTPStatus.Code, _ message: ByteString
  ) -> SFTPPacket {
    .reply(id: id, .status(SFTPStatus(code: code, message: message)))
  }

  @Test func answersAreDecoded() throws {
    for (bytes, packet) in Self.answers { #expect(try SFTPPacket(bytes[...]) == packet) }
  }

  /// Every prefix of a packet is refused or is another valid packet, and none causes a trap.
  @Test func truncatedAnswersAreRefused() {
    for (bytes, packet) in Self.answers {
      for count in 0..<bytes.count {
        let prefix = try? SFTPPacket(bytes[..<count])
        #expect(prefix == nil || prefix != packet || count >= 9)
      }
    }
    #expect(throws: SFTPViolation.self) { try SFTPPacket([][...]) }
  }

  @Test(arguments: [
    // Data of 4 GiB, 4 billion names, 4 billion attributes, an empty handle, a handle of 257 bytes.
    [103, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 1, 2],
    [104, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0x61],
    [105, 0, 0, 0, 1, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0],
    [102, 0, 0, 0, 1, 0, 0, 0, 0],
    [102, 0, 0, 0, 1, 0, 0, 1, 1] + [UInt8](repeating: 1, count: 257),
    [99, 0, 0, 0, 1, 0, 0, 0, 0],
    [101, 0, 0],
  ]) func absurdFieldsAreRefused(bytes: [UInt8]) {
    #expect(throws: SFTPViolation.self) { try SFTPPacket(bytes[...]) }
  }

  @Test func framesAreCutAnywhere() throws {
    let packets: [[UInt8]] = [[1], [2, 3, 4], [UInt8](repeating: 9, count: 70_000)]
    let stream = packets.flatMap { packet -> [UInt8] in
      [0, UInt8(packet.count >> 16), UInt8(packet.count >> 8 & 0xff), UInt8(packet.count & 0xff)]
        + packet
    }
    for size in [1, 2, 3, 5, 4096, stream.count] {
      var (frames, found) = (SFTPFrames(), [[UInt8]]())
      for start in stride(from: 0, to: stream.count, by: size) {
        frames.append(stream[start..<min(start + size, stream.count)])
        while let packet = try frames.next() { found.append(Array(packet)) }
      }
      #expect(found == packets, "by \(size)")
    }
  }

  /// The length alone is refused, before the rest of the packet arrives.
  @Test(arguments: [[0, 0, 0, 0], [0, 4, 0, 1], [0xff, 0xff, 0xff, 0xff]] as [[UInt8]])
  func absurdLengthsAreRefused(bytes: [UInt8]) {
    var frames = SFTPFrames()
    frames.append(bytes[...])
    #expect(throws: SFTPViolation.self) { try frames.next() }
  }

  @Test func textOfTheLoginShellIsShown() {
    var frames = SFTPFrames()
    frames.append(Array("Welcome to \u{1b}[1mhost\r\nmore".utf8)[...])
    let error = #expect(throws: SFTPViolation.self) { try frames.next() }
    #expect(error?.reason == "it sent text instead of a packet: 'Welcome to '")
  }

  @Test func limitsOfTheServerAreKeptWithinBounds() throws {
    func limits(_ numbers: [UInt64]) throws -> SFTPLimits {
      try SFTPLimits(
        numbers.flatMap { number in
          (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
        })
    }
    let usual = try limits([256 << 10, 261_120, 261_120, 1000])
    #expect(usual.readPiece == 261_120 && usual.writePiece == 261_120)
    #expect(try limits([0, 0, 0, 0]).readPiece == 32 << 10)
    #expect(try limits([.max, .max, .max, 0]).writePiece == SFTPLimits.pieceLimit)
    #expect(try limits([40_000, 1 << 20, 1, 0]) == limits([40_000, 38_976, 1024, 0]))
    #expect(throws: SFTPViolation.self) { try SFTPLimits([1, 2, 3]) }
  }

  @Test func commandOfSSHHasNoRoomForOptions() {
    let location = SFTPLocation(user: "u", host: "h", port: 22, path: "/p")
    #expect(
      SFTPConnector.words(location, program: ["ssh", "-v"]) == [
        "ssh", "-v", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=20", "-o",
        "ServerAliveCountMax=3", "-p", "22", "-l", "u", "-s", "--", "h", "sftp",
      ])
  }

  @Test(arguments: [
    ("Host key verification failed.", SFTPEnding.Kind.hostKeyUnknown),
    (
      "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
      .hostKeyChanged
    ),
    ("u@h: Permission denied (publickey,password).", .loginRefused),
    ("ssh: Could not resolve hostname h: Name or service not known", .unknownHost),
    ("subsystem request failed on channel 0", .noSubsystem),
    ("ssh: connect to host h port 22: Connection refused", .unreachable),
    ("command-line: line 0: Bad configuration option: x", .noProgram),
  ]) func reasonOfSSHIsRecognized(text: String, kind: SFTPEnding.Kind) {
    let lines = text.split(separator: "\n").map { ByteString(String($0)) }
    let ending = SFTPEnding(lines: lines, code: 255, wasConnected: false)
    #expect(ending.kind == kind)
    #expect(ending.isPermanent == (kind != .unknownHost && kind != .unreachable))
    #expect(ending.description.contains("Host") || kind != .hostKeyUnknown)
  }

  /// A server's text can neither flood a screen nor control a terminal.
  @Test func linesOfSSHAreBoundedAndEscaped() {
    let long = ByteString([0x1b, 0x07] + [UInt8](repeating: 0x61, count: 5000))
    let ending = SFTPEnding(
      lines: [ByteString](repeating: long, count: 50), code: 255, wasConnected: true)
    #expect(ending.lines.count == SFTPEnding.lineCount)
    #expect(ending.description.utf8.count < 1500)
    #expect(ending.lines.allSatisfy { $0.hasPrefix("\\x1b\\x07aaa") })
  }

  @Test func pausesGrowUpToALimit() {
    let pauses = (1...30).map { SFTPSession.pause(after: $0) }
    #expect(pauses[0] == 0.4 && pauses[1] == 0.8 && pauses.max() == 15)
    #expect(pauses == pauses.sorted())
  }
}
