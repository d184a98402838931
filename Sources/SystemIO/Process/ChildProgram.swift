internal import CLinux
internal import Glibc

/// Runs other programs.
public enum ChildProgram {
  /// The result of a program.
  public struct Ending: Sendable, Hashable {
    /// The exit status, or 128 plus the number of the signal that killed it.
    public let code: Int
    public let output: [UInt8]
    public let errors: [UInt8]
  }

  /// The maximum number of bytes returned for each output stream.
  private static let limit = 16 << 20

  /// Runs the program named by the first word, searched in `PATH`, with this process's environment,
  /// and waits until it exits. Its standard streams are memory files, so it never blocks on output.
  ///
  /// - Throws: if the program does not exist or cannot be executed.
  public static func run(
    _ words: [ByteString], input: [UInt8] = []
  ) throws(SystemError) -> Ending {
    guard let name = words.first else { throw SystemError(.run, "", number: ENOENT) }
    let given = try Descriptor.inMemory(input)
    try given.seek(to: 0)
    let output = try Descriptor.inMemory([])
    let errors = try Descriptor.inMemory([])
    let (inRaw, outRaw, errRaw) = (given.raw, output.raw, errors.raw)
    var pointers = unsafe words.map { word in unsafe word.withCString { unsafe strdup($0) } }
    unsafe pointers.append(nil)
    defer { for index in unsafe pointers.indices { unsafe free(pointers[index]) } }
    let code = try SystemError.check(.run, name) {
      unsafe pointers.withUnsafeBufferPointer {
        guard let first = $0.baseAddress else { return -Int(ENOENT) }
        return unsafe cl_run(first, inRaw, outRaw, errRaw)
      }
    }
    return Ending(code: code, output: try written(output), errors: try written(errors))
  }

  private static func written(_ file: borrowing Descriptor) throws(SystemError) -> [UInt8] {
    let size = try file.status().size
    return try file.read(count: Int(min(size, UInt64(limit))), at: 0)
  }
}
