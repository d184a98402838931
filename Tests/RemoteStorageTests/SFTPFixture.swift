import ArchiveStore
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import RemoteStorage

/// A directory that is served on this host by OpenSSH's `sftp-server` over pipes, without ssh.
struct SFTPFixture {
  static let server = "/usr/lib/openssh/sftp-server"

  /// Whether the server is installed. Prints a line if not.
  static var isInstalled: Bool {
    if FileManager.default.isExecutableFile(atPath: server) { return true }
    print("skipped: no \(server)")
    return false
  }

  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory("sftp", inMemory: true) }

  /// The options in tests: a lost connection is made again for a few seconds.
  static var options: SFTPOptions {
    var options = SFTPOptions()
    (options.patience, options.silence) = (3, 5)
    options.isStopping = { false }
    return options
  }

  static var connector: SFTPConnector { SFTPConnector(words: [ByteString(server)]) }

  /// Opens the storage in an existing subdirectory of the fixture's.
  func open(
    _ name: ByteString = "store", through connector: SFTPConnector = Self.connector,
    options: SFTPOptions = Self.options
  ) throws -> SFTPStorage {
    let storage = try SFTPStorage(
      connector, path: directory.path(name), location: "sftp:test/store", options: options)
    try storage.requireRoot()
    return storage
  }

  /// Creates the storage.
  func create(
    _ name: ByteString = "store", through connector: SFTPConnector = Self.connector,
    options: SFTPOptions = Self.options
  ) throws -> SFTPStorage {
    let storage = try SFTPStorage(
      connector, path: directory.path(name), location: "sftp:test/store", options: options)
    try storage.createRoot()
    return storage
  }

  /// Creates the storage with the directories of a repository.
  func make(
    _ name: ByteString = "store", through connector: SFTPConnector = Self.connector
  ) throws -> SFTPStorage {
    let storage = try create(name, through: connector)
    try storage.makeDirectories(["objects", "lease"], in: .root)
    return storage
  }

  /// The mode of an entry.
  func mode(_ name: String) throws -> Int {
    let path = directory.string + "/" + name
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return try #require(attributes[.posixPermissions] as? Int)
  }
}

/// Returns the error thrown by a call, or nil if it throws none.
func storeError<Result>(_ body: () throws -> Result) -> StoreError? {
  do {
    _ = try body()
    return nil
  } catch { return error as? StoreError }
}

/// Returns the object path of a text that must be valid.
func path(_ text: String) throws -> ObjectPath { try #require(ObjectPath(text)) }

/// A server that loses connections and lacks extensions as a test requires.
final class FaultyServer: Sendable {
  /// The point at which a connection is lost.
  enum Loss: Sendable, CaseIterable {
    /// Before the server receives the request.
    case request
    /// After the server has carried it out.
    case answer
  }

  struct State: Sendable {
    /// The number of requests sent, except for those that start a connection.
    var count = 0
    /// The number of the request at which the connection is lost, counted from 1.
    var losing: Int?
    var loss = Loss.request
    /// Whether every further connection fails.
    var isDown = false
    /// The number of connections.
    var connections = 0
    /// The types of the requests (`SFTPRequest`).
    var types: [UInt8] = []
    /// The length of the longest request.
    var longest = 0
    /// The extensions that the server does not offer on further connections.
    var lacking: [SFTPExtension] = []
  }

  let state = Mutex(State())
  private let words: [ByteString]

  init(lacking: [SFTPExtension] = [], words: [ByteString] = [ByteString(SFTPFixture.server)]) {
    self.words = words
    state.withLock { $0.lacking = lacking }
  }

  var count: Int { state.withLock(\.count) }

  /// Makes the connection fail at a request, counted from now.
  func lose(at number: Int?, _ loss: Loss) {
    state.withLock { ($0.count, $0.losing, $0.loss) = (0, number, loss) }
  }

  var connector: SFTPConnector {
    let inner = SFTPConnector(words: words)
    return SFTPConnector(
      input: { () throws(SystemError) in Input(self, try inner.input()) },
      connect: { input throws(SystemError) in
        let (isDown, lacking) = self.state.withLock { state in
          state.connections += 1
          return (state.isDown, state.lacking)
        }
        guard let input = input as? Input else { throw SystemError(.run, "ssh", number: 2) }
        if isDown { return try RunningProgram(Self.unreachable) }
        return Peer(try inner.connect(input.inner), input, lacking)
      })
  }

  private static let unreachable: [ByteString] = [
    "sh", "-c", "echo 'ssh: connect to host h port 22: Connection refused' >&2; exit 255",
  ]

  /// Counts a request. Returns whether it reaches the server, and whether its answer reaches the
  /// client.
  fileprivate func next(_ packet: [UInt8]) -> (isSent: Bool, isAnswered: Bool) {
    state.withLock { state in
      guard packet.count > 5, packet[4] != 1 else { return (true, true) }
      state.count += 1
      state.types.append(packet[4])
      state.longest = max(state.longest, packet.count)
      guard state.losing == state.count else { return (true, true) }
      return (state.loss == .answer, false)
    }
  }

  private final class Input: SFTPInput {
    private let server: FaultyServer
    let inner: any SFTPInput
    let isLost = Atomic<Bool>(false)

    init(_ server: FaultyServer, _ inner: any SFTPInput) {
      (self.server, self.inner) = (server, inner)
    }

    func write(_ bytes: [UInt8], mayWait: () -> Bool) throws(SystemError) {
      if isLost.load(ordering: .relaxed) { throw SystemError(.write, "ssh", number: 32) }
      let (isSent, isAnswered) = server.next(bytes)
      if isSent { try inner.write(bytes, mayWait: mayWait) }
      if isAnswered { return }
      // Gives the server time to carry it out. Its answer is dropped.
      if isSent { Host.pause(seconds: 0.02) }
      isLost.store(true, ordering: .relaxed)
      inner.close()
    }

    func close() { inner.close() }
  }

  private final class Peer: SFTPPeer {
    private let inner: any SFTPPeer
    private let input: Input
    private let lacking: [SFTPExtension]
    private var isFirst = true

    init(_ inner: any SFTPPeer, _ input: Input, _ lacking: [SFTPExtension]) {
      (self.inner, self.input, self.lacking) = (inner, input, lacking)
    }

    func read(into buffer: inout [UInt8], isStopping: () -> Bool) throws(SystemError) -> Int? {
      let count = try inner.read(into: &buffer, isStopping: isStopping)
      if input.isLost.load(ordering: .relaxed) { return 0 }
      if isFirst, let count, count > 0 {
        isFirst = false
        rename(in: &buffer, count)
      }
      return count
    }

    /// Renames the extensions that the server should lack, to names of the same length.
    private func rename(in buffer: inout [UInt8], _ count: Int) {
      for name in lacking.map({ Array($0.rawValue.utf8) }) {
        for start in 0..<max(0, count - name.count)
        where buffer[start..<(start + name.count)].elementsEqual(name) {
          buffer[start] = UInt8(ascii: "X")
        }
      }
    }

    func lastErrorLines(_ count: Int) -> [ByteString] { inner.lastErrorLines(count) }
    var code: Int? { inner.code }
    func waitForEnd(isStopping: () -> Bool) throws(SystemError) -> Int? {
      try inner.waitForEnd(isStopping: isStopping)
    }
    func end() { inner.end() }
  }
}
