internal import SystemIO

/// The direction of a connection to the server. Used by any thread.
protocol SFTPInput: Sendable {
  /// Sends all bytes. Called by one thread at a time. `mayWait` is called several times a second
  /// while the server accepts none; if it returns false, the call fails.
  func write(_ bytes: [UInt8], mayWait: () -> Bool) throws(SystemError)
  /// Ends the input, even while another thread is writing.
  func close()
}

/// A server, or the program that connects to it. Used by the connection's thread alone.
protocol SFTPPeer: AnyObject {
  /// Waits for bytes and reads those available. Returns their number, 0 at the end, or nil if
  /// `isStopping`, which is called several times a second, returned true.
  func read(into buffer: inout [UInt8], isStopping: () -> Bool) throws(SystemError) -> Int?
  /// The last lines that it printed for people.
  func lastErrorLines(_ count: Int) -> [ByteString]
  /// The exit status, once it has ended.
  var code: Int? { get }
  /// Waits until it has ended, at most until `isStopping` returns true.
  func waitForEnd(isStopping: () -> Bool) throws(SystemError) -> Int?
  /// Ends it.
  func end()
}

extension ProgramInput: SFTPInput {}

extension RunningProgram: SFTPPeer {}

/// A way to reach a server.
struct SFTPConnector: Sendable {
  /// Creates the direction to the server.
  let input: @Sendable () throws(SystemError) -> any SFTPInput
  /// Connects. Called on the connection's thread, which lives as long as the connection.
  let connect: @Sendable (any SFTPInput) throws(SystemError) -> any SFTPPeer
}

extension SFTPConnector {
  /// A program that speaks the protocol on its standard streams: `ssh`, or a server on this host.
  init(words: [ByteString]) {
    input = { () throws(SystemError) in try ProgramInput(name: words.first ?? "ssh") }
    connect = { input throws(SystemError) in
      try RunningProgram(words, input: input as? ProgramInput)
    }
  }

  /// The user's own ssh, so that its configuration, agent, known hosts and jump hosts are used.
  ///
  /// It asks nothing. A connection without an answer for a minute is dead: by default ssh would
  /// wait for the operating system's limits, which are hours while nothing is being sent.
  ///
  /// - Parameter program: the words of the program (default: `ssh`).
  init(_ location: SFTPLocation, program: [ByteString] = ["ssh"]) {
    self.init(words: Self.words(location, program: program))
  }

  static func words(_ location: SFTPLocation, program: [ByteString]) -> [ByteString] {
    var words = program.isEmpty ? ["ssh"] : program
    words += ["-o", "BatchMode=yes", "-o", "ServerAliveInterval=20", "-o", "ServerAliveCountMax=3"]
    if let port = location.port { words += ["-p", ByteString("\(port)")] }
    if let user = location.user { words += ["-l", user] }
    // `--` ends the options, so that no host can be mistaken for one.
    return words + ["-s", "--", location.host, "sftp"]
  }
}
