internal import CLinux
internal import Glibc

/// Another program whose standard output is read while it runs.
///
/// It has no terminal, so it cannot ask for anything, and it is in a separate process group, so
/// signals of the terminal do not reach it. It is ended (`end`) at the end of the value's lifetime,
/// and when the thread that started it ends. Only the end of its standard error is kept. For use by
/// one thread.
public final class RunningProgram {
  /// The first word, as it was given.
  public let name: ByteString
  private let process: Int32
  private let output: Descriptor
  private let errors: Descriptor
  private var isOutputOpen = true
  private var areErrorsOpen = true
  /// The last bytes of standard error, at most twice `errorLimit`.
  private var lastErrors: [UInt8] = []
  private var errorBuffer = [UInt8](repeating: 0, count: 16 << 10)
  /// The exit status, or 128 plus the number of the signal that killed it; nil while it runs.
  public private(set) var code: Int?

  /// The number of bytes of standard error that are kept.
  private static let errorLimit = 16 << 10
  /// The maximum number of reads after the end: a pipe holds 64 KiB.
  private static let lastReads = 64
  /// The time between two calls of `isStopping`, in milliseconds.
  private static let step: Int32 = 200
  /// The time in seconds that the program has to end after SIGINT, before SIGKILL.
  private static let patience = 10.0

  /// Starts the program named by the first word, searched in `PATH`, with this process's
  /// environment and other values of some variables.
  ///
  /// - Parameter input: the standard input, which is written from other threads (default: empty).
  /// - Throws: if the program does not exist or cannot be executed.
  public init(
    _ words: [ByteString], environment added: [(name: String, value: String)] = [],
    input: ProgramInput? = nil
  ) throws(SystemError) {
    guard let name = words.first else { throw SystemError(.run, "", number: ENOENT) }
    let outputs = try Pipe(name)
    let messages = try Pipe(name)
    let variables = added.map { ByteString("\($0.name)=\($0.value)") }
    var strings = unsafe Self.strings(words)
    var entries = unsafe Self.strings(variables)
    defer {
      for index in unsafe strings.indices { unsafe free(strings[index]) }
      for index in unsafe entries.indices { unsafe free(entries[index]) }
    }
    let (out, err) = (outputs.writer.raw, messages.writer.raw)
    let given = input?.programEnd
    let started = try SystemError.check(.run, name) {
      unsafe strings.withUnsafeMutableBufferPointer { words -> Int in
        unsafe entries.withUnsafeMutableBufferPointer { entries -> Int in
          guard let words = words.baseAddress, let entries = entries.baseAddress else {
            return -Int(ENOENT)
          }
          guard let given else { return unsafe cl_start(words, entries, out, err) }
          return unsafe cl_start_with_input(words, entries, given, out, err)
        }
      }
    }
    // Only the program has the write ends, so that its end is the end of the streams.
    try? outputs.writer.close()
    try? messages.writer.close()
    input?.closeProgramEnd()
    self.name = name
    process = Int32(started)
    output = outputs.end
    errors = messages.end
  }

  deinit { end() }

  /// Returns copies of the words for C, followed by a null pointer. The caller frees them.
  private static func strings(_ words: [ByteString]) -> [UnsafeMutablePointer<CChar>?] {
    var strings = unsafe words.map { word in unsafe word.withCString { unsafe strdup($0) } }
    unsafe strings.append(nil)
    return unsafe strings
  }
}

/// A pipe with both ends open.
private struct Pipe: ~Copyable {
  let end: Descriptor
  let writer: Descriptor

  init(_ name: ByteString) throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    _ = try SystemError.check(.run, name) {
      unsafe ends.withUnsafeMutableBufferPointer { ends -> Int in
        guard let first = ends.baseAddress else { return -Int(EFAULT) }
        return unsafe cl_pipe(first)
      }
    }
    end = Descriptor(adopting: ends[0], name: name)
    writer = Descriptor(adopting: ends[1], name: name)
  }
}

// MARK: - Reading

extension RunningProgram {
  /// Waits for bytes of the standard output, and reads those that it has into `buffer`.
  ///
  /// - Returns: the number of bytes, 0 at the end, or nil if `isStopping`, which is called several
  ///   times a second, returned true.
  public func read(
    into buffer: inout [UInt8], isStopping: () -> Bool
  ) throws(SystemError) -> Int? {
    while isOutputOpen {
      if isStopping() { return nil }
      let ready = try wait(milliseconds: Self.step)
      if ready & 2 != 0 { try readErrors() }
      if ready & 1 != 0 {
        let count = try Self.read(output, into: &buffer)
        isOutputOpen = count > 0
        return count
      }
      // A process that it left behind may keep the pipe open. Whatever the program wrote between
      // the wait and its end is in the pipe now.
      if ready == 0, try hasEnded(), try wait(milliseconds: 0) & 1 == 0 { isOutputOpen = false }
    }
    return 0
  }

  /// Discards the rest of the output and waits until the program has ended.
  ///
  /// - Returns: its exit status as in `code`, or nil if `isStopping` returned true.
  public func waitForEnd(isStopping: () -> Bool) throws(SystemError) -> Int? {
    var portion = [UInt8](repeating: 0, count: 64 << 10)
    while try read(into: &portion, isStopping: isStopping) != 0 {
      if isStopping() { return nil }
    }
    while try !hasEnded() {
      if isStopping() { return nil }
      if try wait(milliseconds: 20) & 2 != 0 { try readErrors() }
    }
    try readRemainingErrors()
    return code
  }

  /// The last lines of the standard error that were read, at most `count`; without empty ones.
  public func lastErrorLines(_ count: Int) -> [ByteString] {
    lastErrors.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
      .filter { line in line.contains { $0 != UInt8(ascii: " ") } }
      .suffix(count).map { ByteString($0) }
  }

  /// Returns 1 if there is output, 2 if there are errors, 3 for both, and 0 after the time.
  private func wait(milliseconds: Int32) throws(SystemError) -> Int {
    let (first, second) = (isOutputOpen ? output.raw : -1, areErrorsOpen ? errors.raw : -1)
    return try SystemError.check(.read, name) { cl_wait_for_inputs(first, second, milliseconds) }
  }

  private static func read(
    _ stream: borrowing Descriptor, into buffer: inout [UInt8]
  ) throws(SystemError) -> Int {
    let raw = stream.raw
    return try SystemError.check(.read, stream.name) {
      unsafe buffer.withUnsafeMutableBytes { unsafe cl_read(raw, $0.baseAddress, $0.count) }
    }
  }

  private func readErrors() throws(SystemError) {
    let count = try Self.read(errors, into: &errorBuffer)
    areErrorsOpen = count > 0
    lastErrors += errorBuffer[..<count]
    if lastErrors.count > 2 * Self.errorLimit {
      lastErrors.removeFirst(lastErrors.count - Self.errorLimit)
    }
  }

  /// Reads what the program had written before it ended. A process that it left behind may keep the
  /// pipe open, and even write to it, so the end of the stream is not awaited.
  private func readRemainingErrors() throws(SystemError) {
    isOutputOpen = false
    for _ in 0..<Self.lastReads where areErrorsOpen {
      if try wait(milliseconds: 0) == 0 { return }
      try readErrors()
    }
  }
}

// MARK: - The end

extension RunningProgram {
  private func hasEnded() throws(SystemError) -> Bool {
    if code != nil { return true }
    var number: Int32 = 0
    let hasEnded = try SystemError.check(.run, name) { unsafe cl_child_ended(process, &number) }
    if hasEnded == 1 { code = Int(number) }
    return hasEnded == 1
  }

  /// Ends the program and all processes of its group: SIGINT, after which it can remove its locks,
  /// and SIGKILL 10 seconds later. Its output is discarded meanwhile. A program that has ended is
  /// not affected.
  public func end() {
    if code != nil { return }
    _ = cl_signal_group(process, SIGINT)
    let limit = Host.monotonicSeconds() + Self.patience
    let isLate = { Host.monotonicSeconds() > limit }
    if (try? waitForEnd(isStopping: isLate)) != nil { return }
    _ = cl_signal_group(process, SIGKILL)
    while code == nil {
      guard (try? hasEnded()) != nil else { return }
      _ = cl_wait_for_inputs(-1, -1, 10)
    }
  }
}
