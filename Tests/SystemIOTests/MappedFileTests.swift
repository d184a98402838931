import Glibc
import SystemIO
import TestSupport
import Testing

struct MappedFileTests {
  private let scratch: TemporaryDirectory

  init() throws { scratch = try TemporaryDirectory("mapped") }

  private func map(_ bytes: [UInt8]) throws -> MappedFile {
    try scratch.write(bytes, at: "file")
    return try MappedFile(try scratch.directory.file("file"))
  }

  @Test(arguments: [0, 1, 4095, 4096, 4097, 1 << 20]) func aMappingHasTheFilesBytes(count: Int)
    throws
  {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let file = try map(bytes)
    #expect(file.count == count)
    let read = file.withBytes { all in
      (0..<all.byteCount).map { all.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
    }
    #expect(read == bytes)
  }

  @Test func aMappingOutlivesTheRemovalOfItsFile() throws {
    let file = try map([1, 2, 3])
    try scratch.directory.remove("file")
    try scratch.write([UInt8](repeating: 9, count: 3), at: "file")
    #expect(file.withBytes { $0.unsafeLoad(fromByteOffset: 2, as: UInt8.self) } == 3)
  }

  @Test func anErrorOfTheBodyIsRethrown() throws {
    struct Failure: Error {}
    let file = try map([1])
    #expect(throws: Failure.self) { try file.withBytes { _ in throw Failure() } }
  }

  /// If the disk can no longer read a page, the program ends with a message and an exit status, not
  /// with a signal.
  @Test func anUnreadablePageEndsTheProgramWithAMessage() async throws {
    let path = scratch.path("file").description
    try scratch.write([UInt8](repeating: 1, count: 20_000), at: "file")
    let result = await #expect(
      processExitsWith: .exitCode(1), observing: [\.standardErrorContent]
    ) { [path = path as String] in
      try MappedFile.exitOnReadFailure(saying: "cannot read it\n")
      let directory = try Directory.open(path: ByteString(String(path.dropLast(5))))
      let file = try MappedFile(directory.file("file"))
      // A truncated file has no page there, which is like a bad sector.
      try directory.openOrCreate("file").truncate(to: 10)
      let byte = file.withBytes { $0.unsafeLoad(fromByteOffset: 10_000, as: UInt8.self) }
      // This line is not reached.
      try directory.createLink(ByteString("\(byte)"), to: "read")
    }
    let errors = try #require(result).standardErrorContent
    #expect(String(decoding: errors, as: UTF8.self) == "cannot read it\n")
    #expect(try scratch.directory.names() == ["file"])
  }

  /// A signal sent by another process does not mean that a page is unreadable.
  @Test func aSentSignalEndsTheProgramAsUsual() async throws {
    await #expect(processExitsWith: .signal(SIGBUS)) {
      try MappedFile.exitOnReadFailure(saying: "cannot read it\n")
      raise(SIGBUS)
    }
  }

  @Test func errorsNameOperationAndFile() throws {
    for operation in [SystemError.Operation.map, .status] {
      let error = failure {
        try Faults.inject(Faults.Plan(failing: [operation], at: 1, number: 12)) {
          _ = try map([1])
        }
      }
      #expect(error?.operation == operation)
      #expect(error?.path.lastComponent == "file")
    }
  }
}
