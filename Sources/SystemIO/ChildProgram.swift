internal import CLinux
internal import Glibc

/// Another program that is run to its end.
public enum ChildProgram {
  /// How a program ended, and what it wrote.
  public struct Ending: Sendable, Hashable {
    /// The exit code, or 128 and the number of the signal that ended it.
    public let code: Int
    public let output: [UInt8]
    public let errors: [UInt8]
  }

  /// Bytes of each stream that are given back at most.
  private static let limit = 16 << 20

  /// Runs the program that the first word names, looked for in `PATH`, with this process's
  /// environment, and waits for its end. Its streams are files in memory, so that no amount of output
  /// holds it up.
  ///
  /// - Throws: when it cannot be started: there is none of that name, or it is none.
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
