import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import RemoteStorage

/// Servers that violate the protocol: this must always result in an error, never in a trap, a hang,
/// or wrong data.
struct SFTPHostileServerTests {
  /// A server in this process: a function that returns the answer to each request.
  private static func connector(
    hello: [UInt8] = [0, 0, 0, 5, 2, 0, 0, 0, 3],
    _ answer: @escaping @Sendable (_ type: UInt8, _ id: [UInt8], _ packet: [UInt8]) -> [UInt8]?
  ) -> SFTPConnector {
    SFTPConnector(
      input: { () in FakeServer(hello: hello, answer) },
      connect: { input throws(SystemError) in
        guard let server = input as? FakeServer else { throw SystemError(.run, "", number: 2) }
        return FakePeer(server)
      })
  }

  private static func storage(_ connector: SFTPConnector) throws -> SFTPStorage {
    var options = SFTPFixture.options
    (options.patience, options.silence) = (0.5, 1)
    return try SFTPStorage(connector, path: "/r", location: "sftp:fake/r", options: options)
  }

  /// Returns a packet with these fields.
  private static func packet(_ parts: [UInt8]...) -> [UInt8] {
    let body = parts.flatMap { $0 }
    return [0, UInt8(body.count >> 16), UInt8(body.count >> 8 & 0xff), UInt8(body.count & 0xff)]
      + body
  }

  private static func status(_ id: [UInt8], _ code: UInt8) -> [UInt8] {
    packet([101], id, [0, 0, 0, code])
  }

  /// Returns the attributes of a file of this size.
  private static func file(_ id: [UInt8], size: [UInt8]) -> [UInt8] {
    packet([105], id, [0, 0, 0, 5], size, [0, 0, 0x81, 0x80])
  }

  @Test(arguments: [2, 4, 6] as [UInt8]) func otherVersionsAreRefused(version: UInt8) {
    let connector = Self.connector(hello: [0, 0, 0, 5, 2, 0, 0, 0, version]) { _, _, _ in nil }
    let error = storeError { try Self.storage(connector) }
    #expect(error?.reason.contains("version \(version)") == true)
  }

  @Test(
    arguments: [
      [0, 0, 0, 1, 2], [0, 0, 0, 5, 101, 0, 0, 0, 3], [0xff, 0xff, 0xff, 0xff, 2], [],
      Array("You have new mail.\n".utf8),
    ] as [[UInt8]]) func badGreetingsAreRefused(hello: [UInt8])
  {
    let connector = Self.connector(hello: hello) { _, _, _ in nil }
    let error = storeError { try Self.storage(connector) }
    #expect(error?.code == .system && error?.hint != nil, "\(error as Any)")
  }

  @Test func answerToARequestThatWasNotSentIsRefused() throws {
    let storage = try Self.storage(Self.connector { _, id, _ in Self.status([9, 9, 9, 9], 0) })
    let error = storeError { try storage.requireRoot() }
    #expect(error?.reason.contains("was not sent") == true, "\(error as Any)")
  }

  @Test func answerOfAnotherKindIsRefused() throws {
    let storage = try Self.storage(
      Self.connector { _, id, _ in Self.packet([103], id, [0, 0, 0, 1, 5]) })
    let error = storeError { try storage.requireRoot() }
    #expect(error?.reason.contains("wrong type") == true, "\(error as Any)")
  }

  /// A connection on which the server stops answering is closed.
  @Test func silentServerTimesOut() throws {
    let storage = try Self.storage(Self.connector { _, _, _ in nil })
    let start = Host.monotonicSeconds()
    let error = storeError { try storage.requireRoot() }
    #expect(error?.reason.contains("did not answer for 1 seconds") == true, "\(error as Any)")
    #expect(Host.monotonicSeconds() - start < 10)
  }

  /// The connection is also closed if the server sends only a byte of a large answer now and then.
  @Test func aServerThatSendsTooFewBytesTimesOut() throws {
    let script = #"printf '\0\0\0\5\2\0\0\0\3\0\0\200\0g'; while printf x; do sleep 0.05; done"#
    var options = SFTPFixture.options
    (options.patience, options.silence) = (0.5, 1)
    let storage = try SFTPStorage(
      SFTPConnector(words: ["sh", "-c", ByteString(script)]), path: "/r", location: "sftp:fake/r",
      options: options)
    let error = storeError { try storage.requireRoot() }
    #expect(error?.reason.contains("did not answer for 1 seconds") == true, "\(error as Any)")
  }

  /// The connection is also closed if the server stops reading, so that the buffers become full.
  @Test(.enabled(if: SFTPFixture.isInstalled)) func aServerThatReadsNothingTimesOut() throws {
    let fixture = try SFTPFixture()
    _ = try fixture.make()
    var options = SFTPFixture.options
    (options.silence, options.patience) = (1, 1)
    let line = "dd bs=1 count=20000 status=none | \(SFTPFixture.server); exec sleep 60"
    let storage = try fixture.open(
      through: SFTPConnector(words: ["sh", "-c", ByteString(line)]), options: options)
    let start = Host.monotonicSeconds()
    let error = storeError {
      let writer = try storage.startObject(in: path("lease"))
      for _ in 0..<100 { try writer.append([UInt8](repeating: 1, count: 100_000)) }
    }
    #expect(error?.reason.contains("did not answer for 1 seconds") == true, "\(error as Any)")
    #expect(Host.monotonicSeconds() - start < 20)
  }

  /// The server claims a size of 16 EiB, and sends 3 bytes at a time: no memory is reserved for the
  /// claim.
  @Test func claimedSizesReserveNothing() throws {
    let connector = Self.connector { type, id, _ in
      switch type {
      case 7: Self.file(id, size: [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
      case 3: Self.packet([102], id, [0, 0, 0, 1, 1])
      case 5: Self.packet([103], id, [0, 0, 0, 4, 1, 2, 3, 4])
      default: Self.status(id, 0)
      }
    }
    let storage = try Self.storage(connector)
    #expect(storeError { try storage.load(path("a"), limit: 1 << 30) }?.code == .damaged)
  }

  @Test(arguments: [0, 5]) func dataOfAnotherLengthIsRefused(length: UInt8) throws {
    let connector = Self.connector { type, id, _ in
      switch type {
      case 7: Self.file(id, size: [0, 0, 0, 0, 0, 0, 0, 4])
      case 3: Self.packet([102], id, [0, 0, 0, 1, 1])
      case 5: Self.packet([103], id, [0, 0, 0, length], [UInt8](repeating: 1, count: Int(length)))
      default: Self.status(id, 0)
      }
    }
    let error = storeError { try Self.storage(connector).load(path("a"), limit: 4) }
    #expect(error?.reason.contains("a different number of bytes") == true, "\(error as Any)")
  }

  /// The rest of a short answer is requested again, and an object that ends early is damaged.
  @Test func theRestOfAShortAnswerIsRequestedAgain() throws {
    let connector = Self.connector { type, id, packet in
      switch type {
      case 7: return Self.file(id, size: [0, 0, 0, 0, 0, 0, 0, 10])
      case 3: return Self.packet([102], id, [0, 0, 0, 1, 1])
      case 5:
        let offset = packet[21]
        return offset < 7 ? Self.packet([103], id, [0, 0, 0, 1, offset]) : Self.status(id, 1)
      default: return Self.status(id, 0)
      }
    }
    let storage = try Self.storage(connector)
    #expect(try storage.load(path("a"), offset: 0, count: 7) == [0, 1, 2, 3, 4, 5, 6])
    #expect(storeError { try storage.load(path("a"), offset: 0, count: 8) }?.code == .damaged)
  }

  @Test(arguments: ["../x", "a/b", "", "a\0b"]) func listedNamesCannotLeadElsewhere(
    name: String
  ) throws {
    let name = Array(name.utf8)
    let connector = Self.connector { type, id, _ in
      switch type {
      case 11: Self.packet([102], id, [0, 0, 0, 1, 1])
      case 12:
        Self.packet(
          [104], id, [0, 0, 0, 1, 0, 0, 0, UInt8(name.count)], name, [0, 0, 0, 0, 0, 0, 0, 0])
      default: Self.status(id, 0)
      }
    }
    let error = storeError { try Self.storage(connector).list(.root) }
    #expect(error?.reason.contains("is not a name of a file") == true, "\(error as Any)")
  }

  /// An endless chain of nested directories.
  @Test func endlessDirectoriesAreRefused() throws {
    let counts = Mutex(0)
    let connector = Self.connector { type, id, _ in
      switch type {
      case 11: return Self.packet([102], id, [0, 0, 0, 1, 1])
      case 12:
        let isEnd = counts.withLock { count in
          count += 1
          return count % 2 == 0
        }
        if isEnd { return Self.status(id, 1) }
        return Self.packet(
          [104], id, [0, 0, 0, 1, 0, 0, 0, 1, 0x61, 0, 0, 0, 0, 0, 0, 0, 12],
          [0, 0, 0x41, 0xc0, 0, 0, 0, 1, 0, 0, 0, 1])
      default: return Self.status(id, 0)
      }
    }
    let storage = try Self.storage(connector)
    let error = storeError { try storage.forEachObject(below: .root) { _, _ in } }
    #expect(error?.reason.contains("directories without end") == true, "\(error as Any)")
  }

  /// A directory in which the server repeatedly lists `.`.
  @Test func aDirectoryOfItselfWithoutEndIsRefused() throws {
    let entry: [UInt8] = [0, 0, 0, 1, 0x2e, 0, 0, 0, 0, 0, 0, 0, 0]
    let connector = Self.connector { type, id, _ in
      switch type {
      case 11: Self.packet([102], id, [0, 0, 0, 1, 1])
      case 12: Self.packet([104], id, [0, 0, 0, 1], entry)
      default: Self.status(id, 0)
      }
    }
    let error = storeError { try Self.storage(connector).list(.root) }
    #expect(error?.reason.contains("a directory without end") == true, "\(error as Any)")
  }

  /// Answers in reverse order reach the right readers.
  @Test func answersArriveInAnyOrder() throws {
    let held = Mutex([[UInt8]]())
    let connector = Self.connector { type, id, packet in
      switch type {
      case 7: return Self.file(id, size: [0, 0, 0, 0, 0, 1, 0x80, 0])
      case 3: return Self.packet([102], id, [0, 0, 0, 1, 1])
      case 5:
        let piece = Self.packet(
          [103], id, [0, 0, 0x80, 0], [UInt8](repeating: packet[20], count: 0x8000))
        return held.withLock { held in
          held.insert(piece, at: 0)
          if held.count < 3 { return nil }
          defer { held = [] }
          return held.flatMap { $0 }
        }
      default: return Self.status(id, 0)
      }
    }
    let bytes = try Self.storage(connector).load(path("a"), limit: 1 << 20)
    #expect(bytes.count == 0x18000)
    for number in 0..<3 {
      // The expected byte is the third one of the offset, in steps of 32 KiB.
      #expect(bytes[number * 0x8000] == [0, 0x80, 0][number])
      #expect(bytes[number * 0x8000 + 0x7fff] == [0, 0x80, 0][number])
    }
  }

  /// A server that waits for 64 requests before it answers gets them, but never more.
  @Test func sixtyFourRequestsAreInFlight() throws {
    let pieces = 70
    let held = Mutex((waiting: [[UInt8]](), answered: 0, most: 0))
    let connector = Self.connector { type, id, packet in
      switch type {
      case 7: return Self.file(id, size: [0, 0, 0, 0, 0, 0x23, 0, 0])
      case 3: return Self.packet([102], id, [0, 0, 0, 1, 1])
      case 5:
        let piece = Self.packet([103], id, [0, 0, 0x80, 0], [UInt8](repeating: 1, count: 0x8000))
        return held.withLock { held in
          held.waiting.append(piece)
          held.most = max(held.most, held.waiting.count)
          guard held.waiting.count == 64 || held.answered + held.waiting.count == pieces else {
            return nil
          }
          defer { held.waiting = [] }
          held.answered += held.waiting.count
          return held.waiting.flatMap { $0 }
        }
      default: return Self.status(id, 0)
      }
    }
    let bytes = try Self.storage(connector).load(path("a"), limit: 4 << 20)
    #expect(bytes.count == pieces * 0x8000)
    #expect(held.withLock { $0.most } == 64)
  }

  /// Messages of a server are escaped when they are shown.
  @Test func messagesOfTheServerAreEscaped() throws {
    let connector = Self.connector { _, id, _ in
      Self.packet([101], id, [0, 0, 0, 4, 0, 0, 0, 5, 0x1b, 0x5b, 0x31, 0x6d, 0x0a])
    }
    let error = storeError { try Self.storage(connector).list(.root) }
    #expect(error?.reason == "the server reports: \\x1b[1m\\n")
  }
}

/// The input of a server in this process.
private final class FakeServer: SFTPInput {
  typealias Answer = @Sendable (_ type: UInt8, _ id: [UInt8], _ packet: [UInt8]) -> [UInt8]?
  private let hello: [UInt8]
  private let answer: Answer
  let answers = BoundedQueue<[UInt8]>(capacity: 1000)

  init(hello: [UInt8], _ answer: @escaping Answer) { (self.hello, self.answer) = (hello, answer) }

  func write(_ bytes: [UInt8], mayWait: () -> Bool) {
    if bytes[4] == 1 {
      answers.enqueue(hello)
      // An incomplete or empty greeting is the last thing that the server sends.
      if hello.count < 9 { answers.close() }
    } else if let reply = answer(bytes[4], Array(bytes[5..<9]), bytes) {
      answers.enqueue(reply)
    }
  }

  func close() { answers.close() }
}

private final class FakePeer: SFTPPeer {
  private let server: FakeServer
  private var rest: [UInt8] = []

  init(_ server: FakeServer) { self.server = server }

  func read(into buffer: inout [UInt8], isStopping: () -> Bool) throws(SystemError) -> Int? {
    while rest.isEmpty {
      guard let next = server.answers.dequeue() else { return 0 }
      rest = next
    }
    let count = min(rest.count, buffer.count)
    buffer.replaceSubrange(0..<count, with: rest.prefix(count))
    rest.removeFirst(count)
    return count
  }

  func lastErrorLines(_ count: Int) -> [ByteString] { [] }
  var code: Int? { 0 }
  func waitForEnd(isStopping: () -> Bool) throws(SystemError) -> Int? { 0 }
  func end() {}
}
