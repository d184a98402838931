import ArchiveStore
import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import RemoteStorage

/// The storage through OpenSSH's `sshd` on the loopback interface, with separate keys.
@Suite(.enabled(if: SSHServer.isInstalled), .serialized) struct SSHTests {
  @Test func objectsAreStoredAndReadThroughSSH() throws {
    let server = try SSHServer()
    let storage = try SFTPStorage.create(server.location("store"), options: server.options)
    try storage.makeDirectories(["objects", "lease"], in: .root)
    let bytes = Seeded.some(5, count: 3 << 20)
    try storage.save(bytes, as: path("objects/a"), by: path("lease"))
    #expect(try storage.load(path("objects/a"), limit: 1 << 22) == bytes)
    let again = try SFTPStorage(server.location("store"), options: server.options)
    #expect(try again.load(path("objects/a"), offset: 5, count: 9) == Array(bytes[5..<14]))
    #expect(storage.warnings.isEmpty)
    #expect(try again.space() != nil)
    #expect(again.location == "sftp://127.0.0.1:\(server.port)\(server.directory.string)/store")
  }

  /// The link is lost while an object is being written: the server's process for it is killed.
  @Test func killedConnectionIsMadeAgain() throws {
    let server = try SSHServer()
    let storage = try SFTPStorage.create(server.location("store"), options: server.options)
    try storage.makeDirectories(["objects", "lease"], in: .root)
    let bytes = Seeded.some(6, count: 4 << 20)
    let writer = try storage.startObject(in: path("lease"))
    try writer.append(Array(bytes[..<(2 << 20)]))
    try server.killConnections()
    try writer.append(Array(bytes[(2 << 20)...]))
    try server.killConnections()
    try writer.commit(as: path("objects/a"), digest: Blake2b.hash(bytes), isReadSoon: true)
    try server.killConnections()
    #expect(try storage.load(path("objects/a"), limit: 1 << 23) == bytes)
  }

  @Test func refusalsAreClearAndNotRetried() throws {
    let server = try SSHServer()
    let start = Host.monotonicSeconds()
    let missing = storeError { try SFTPStorage(server.location("none"), options: server.options) }
    #expect(missing?.kind == .noRepository)

    var options = server.options
    // The key of a host, which the account does not accept.
    options.sshCommand[options.sshCommand.count - 1] = server.directory.path("other")
    let login = storeError { try SFTPStorage(server.location("store"), options: options) }
    #expect(login?.reason.contains("the server refused the login") == true, "\(login as Any)")
    #expect(login?.reason.contains("Permission denied") == true)
    #expect(login?.hint?.contains("ssh-agent") == true)

    let unknown = SFTPLocation(
      user: nil, host: "no-such-host.invalid", port: server.port, path: "/x")
    let host = storeError { try SFTPStorage(unknown, options: server.options) }
    #expect(host?.reason.contains("cannot be resolved") == true, "\(host as Any)")

    let closed = SFTPLocation(user: nil, host: "127.0.0.1", port: 1, path: "/x")
    let refused = storeError { try SFTPStorage(closed, options: server.options) }
    #expect(refused?.reason.contains("Connection refused") == true, "\(refused as Any)")

    options = server.options
    options.sshCommand = ["no-such-ssh"]
    let program = storeError { try SFTPStorage(server.location("store"), options: options) }
    #expect(program?.hint?.contains("--ssh-command") == true, "\(program as Any)")
    #expect(Host.monotonicSeconds() - start < 20)
  }

  @Test func changedHostKeyIsRefused() throws {
    let server = try SSHServer()
    try server.trustAnotherKey()
    let changed = storeError { try SFTPStorage(server.location("store"), options: server.options) }
    #expect(changed?.reason.contains("the host key of the server has changed") == true)
    #expect(changed?.hint?.contains("ssh-keygen -R") == true)
    try server.trustNoKey()
    let unknown = storeError { try SFTPStorage(server.location("store"), options: server.options) }
    #expect(unknown?.reason.contains("the host key of the server is not known") == true)
  }

  /// A host key that changes while the link is down ends the attempts at once.
  @Test func changedHostKeyEndsAResumption() throws {
    let server = try SSHServer()
    let storage = try SFTPStorage.create(server.location("store"), options: server.options)
    try server.trustAnotherKey()
    try server.killConnections()
    let start = Host.monotonicSeconds()
    let error = storeError { try storage.list(.root) }
    #expect(error?.reason.contains("the host key of the server has changed") == true)
    #expect(Host.monotonicSeconds() - start < 6)
  }

  /// An alias, a key in an agent and a jump host, all from the user's configuration.
  @Test func theUsersOwnConfigurationApplies() throws {
    let server = try SSHServer()
    let place = server.directory.string
    let script =
      "ssh-add -q \(place)/id && rm \(place)/id; echo up; read x; kill $SSH_AGENT_PID"
    let agent = try BoundProcess("ssh-agent", ["-a", "\(place)/agent", "sh", "-c", script])
    #expect(agent.firstLine == "up")
    try server.directory.write(
      """
      Host store
        ProxyJump jump
      Host store jump
        HostName 127.0.0.1
        Port \(server.port)
        UserKnownHostsFile \(place)/known_hosts
        GlobalKnownHostsFile /dev/null
        IdentityAgent \(place)/agent
        IdentityFile none

      """, at: "config")
    var options = server.options
    options.sshCommand = ["ssh", "-F", ByteString("\(place)/config")]
    let location = SFTPLocation(
      user: nil, host: "store", port: nil, path: server.directory.path("store"))
    let storage = try SFTPStorage.create(location, options: options)
    try storage.makeDirectories(["objects", "lease"], in: .root)
    try storage.save([1, 2], as: path("objects/a"), by: path("lease"))
    #expect(try storage.load(path("objects/a"), limit: 2) == [1, 2])
    // One login at the jump host, and one through it at the server.
    let log = String(decoding: try server.directory.read("log"), as: UTF8.self)
    #expect(log.ranges(of: "Accepted publickey").count == 2, "\(log)")
    withExtendedLifetime(agent) {}
  }

  /// The line in docs/remote.md that limits a key to file access, whatever command a client
  /// requests.
  @Test func aForcedCommandLimitsAKeyToFiles() throws {
    let server = try SSHServer()
    let place = server.directory.string
    let storage = try SFTPStorage.create(server.location("store"), options: server.options)
    try storage.makeDirectories(["objects", "lease"], in: .root)
    let key = String(decoding: try server.directory.read("id.pub"), as: UTF8.self)
    for more in ["", " -P remove,rmdir"] {
      try server.directory.write(
        "restrict,command=\"internal-sftp -d \(place)/store\(more)\" \(key)", at: "authorized_keys")
      let own = SFTPLocation(user: nil, host: "127.0.0.1", port: server.port, path: ".")
      let limited = try SFTPStorage(own, options: server.options)
      try limited.save([1, 2], as: path("objects/a"), by: path("lease"))
      #expect(try limited.load(path("objects/a"), limit: 2) == [1, 2])
      let removal = storeError { try limited.remove(path("objects/a")) }
      if more.isEmpty {
        #expect(removal == nil, "\(removal as Any)")
      } else {
        #expect(removal?.errorCode == .permissionDenied, "\(removal as Any)")
      }
      // Any other command is not run.
      let words = server.options.sshCommand.map { "\($0)" }
      _ = try Program.run(
        words[0],
        words.dropFirst() + [
          "-o", "BatchMode=yes", "-p", "\(server.port)", "127.0.0.1", "touch \(place)/touched",
        ])
      #expect(!FileManager.default.fileExists(atPath: place + "/touched"))
    }
    #expect(try storage.load(path("objects/a"), limit: 2) == [1, 2])
  }

  /// A server without the SFTP subsystem, like many routers.
  @Test func serverWithoutSFTPIsReported() throws {
    let server = try SSHServer(subsystem: "")
    let error = storeError { try SFTPStorage(server.location("store"), options: server.options) }
    #expect(error?.reason.contains("offers no SFTP") == true, "\(error as Any)")
  }
}

/// An `sshd` on a free port of the loopback interface, which ends when this value is released.
final class SSHServer {
  let directory: TemporaryDirectory
  let port: Int
  private let process: Process
  private let input = Pipe()

  /// Whether all tests are run, the program is installed, and this user can run it. Prints a line
  /// if not.
  static let isInstalled: Bool = {
    guard Host.environment("SANDBOXCTL_TEST_ALL") != nil else { return false }
    let isRoot = Host.userID == 0
    let found = ["/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen", SFTPFixture.server]
      .allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }
    if !found || !isRoot { print("skipped: no sshd that this user can run") }
    return found && isRoot
  }()

  init(subsystem: String = "Subsystem sftp \(SFTPFixture.server)") throws {
    directory = try TemporaryDirectory("sshd", inMemory: true)
    port = try Self.freePort()
    let path = directory.string
    for key in ["host", "other", "id"] {
      _ = try Program.run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", "\(path)/\(key)"])
    }
    try directory.write(try directory.read("id.pub"), at: "authorized_keys")
    try directory.write(
      """
      ListenAddress 127.0.0.1
      Port \(port)
      HostKey \(path)/host
      PidFile none
      AuthorizedKeysFile \(path)/authorized_keys
      StrictModes no
      PasswordAuthentication no
      KbdInteractiveAuthentication no
      UsePAM no
      PermitRootLogin prohibit-password
      \(subsystem)

      """, at: "sshd_config")
    // The directory for privilege separation, which the system's service creates.
    _ = try Directory.make(path: "/run/sshd", permissions: 0o755)
    // The shell kills sshd when its own input is closed, even if the tests are killed. sshd closes
    // all files, which Foundation would mistake for its end.
    let script =
      "/usr/sbin/sshd -D -f \(path)/sshd_config -E \(path)/log </dev/null >/dev/null 2>&1 &"
      + " echo $! > \(path)/pid; read line; kill -9 $!"
    process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", script]
    process.standardInput = input
    try process.run()
    try trustHost(as: "[127.0.0.1]:\(port)")
    try awaitStart()
  }

  deinit {
    try? killConnections()
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  func location(_ name: ByteString) -> SFTPLocation {
    SFTPLocation(user: nil, host: "127.0.0.1", port: port, path: directory.path(name))
  }

  /// The options with this server's keys, independent of the user's configuration.
  var options: SFTPOptions {
    var options = SFTPFixture.options
    options.patience = 10
    options.sshCommand = [
      "ssh", "-F", "none", "-o", ByteString("UserKnownHostsFile=\(directory.string)/known_hosts"),
      "-o", "GlobalKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-o",
      "IdentityAgent=none",
      "-i", ByteString("\(directory.string)/id"),
    ]
    return options
  }

  func trustHost(as name: String) throws { try trust("host", as: name) }

  func trustAnotherKey() throws { try trust("other", as: "[127.0.0.1]:\(port)") }

  func trustNoKey() throws { try directory.write("", at: "known_hosts") }

  private func trust(_ key: String, as name: String) throws {
    let text = String(decoding: try directory.read(ByteString("\(key).pub")), as: UTF8.self)
    let words = text.split(separator: " ").prefix(2).joined(separator: " ")
    try directory.write("\(name) \(words)\n", at: "known_hosts")
  }

  /// Kills the server's processes for all connections.
  func killConnections() throws {
    let server = String(decoding: try directory.read("pid"), as: UTF8.self)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    let children = try Program.run("pgrep", ["-P", server]).output
    for child in children.split(separator: "\n").compactMap({ Int32($0) }) { kill(child, SIGKILL) }
  }

  private func awaitStart() throws {
    let limit = Host.monotonicSeconds() + 20
    while Host.monotonicSeconds() < limit {
      let log = String(decoding: (try? directory.read("log")) ?? [], as: UTF8.self)
      if log.contains("Server listening on") { return }
      guard process.isRunning else { break }
      usleep(20_000)
    }
    throw Program.Failure(description: "sshd does not start")
  }

  /// A port that no program uses now.
  private static func freePort() throws -> Int {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(socket) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, length) | getsockname(socket, $0, &length)
      }
    }
    guard result == 0 else { throw Program.Failure(description: "no free port") }
    return Int(UInt16(bigEndian: address.sin_port))
  }
}
