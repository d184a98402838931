internal import CLinux
internal import Glibc

/// The terminal that controls this process (tty(4)), which need not be a standard stream.
public enum Terminal {
  /// The maximum length of a line that is read, in bytes: a terminal passes no longer ones.
  private static let maximumLine = 4096

  /// Asks for a secret and returns the line that is typed, which is not shown; empty at the end of
  /// the input. The caller wipes it.
  ///
  /// If a signal ends or stops the program meanwhile, the terminal echo is restored first.
  ///
  /// - Throws: if there is no terminal, or after a signal that did not end the program.
  public static func askSecret(_ question: String) throws(SystemError) -> [UInt8] {
    var line = [UInt8](repeating: 0, count: maximumLine)
    let count = try SystemError.check(.read, "/dev/tty") {
      unsafe question.withCString { question in
        unsafe line.withUnsafeMutableBytes {
          unsafe cl_ask_secret(question, $0.baseAddress, $0.count)
        }
      }
    }
    line.removeLast(line.count - count)
    return line
  }
}

extension ChildProgram {
  /// Runs a command in the shell, with this process's environment and standard error and without
  /// input, and returns its exit status as in `Ending`.
  ///
  /// Its standard output, at most `limit` bytes, replaces the content of a buffer, which the caller
  /// wipes. It is never in a file.
  public static func run(
    shell command: ByteString, limit: Int, writingTo bytes: inout [UInt8]
  ) throws(SystemError) -> Int {
    let words: [ByteString] = ["/bin/sh", "-c", command]
    var pointers = unsafe words.map { word in unsafe word.withCString { unsafe strdup($0) } }
    unsafe pointers.append(nil)
    defer { for index in unsafe pointers.indices { unsafe free(pointers[index]) } }
    bytes = [UInt8](repeating: 0, count: limit)
    var count = 0
    let code = try SystemError.check(.run, "/bin/sh") {
      unsafe pointers.withUnsafeBufferPointer { words in
        guard let first = words.baseAddress else { return -Int(ENOENT) }
        return unsafe bytes.withUnsafeMutableBytes {
          unsafe cl_run_reading(first, $0.baseAddress, $0.count, &count)
        }
      }
    }
    bytes.removeLast(bytes.count - count)
    return code
  }
}

extension Host {
  /// Excludes the memory of this process from core dumps (`PR_SET_DUMPABLE` of prctl(2)). Other
  /// processes of the user can no longer inspect it either. Programs that it runs are not affected.
  public static func disableCoreDumps() { _ = cl_disable_core_dumps() }

  /// Returns the value of an environment variable and removes it, so that no program that is run
  /// later inherits it. Nil if it is unset or empty. No other thread may use the environment
  /// meanwhile.
  public static func takeEnvironment(_ name: String) -> ByteString? {
    defer { unsafe unsetenv(name) }
    return environment(name)
  }
}
