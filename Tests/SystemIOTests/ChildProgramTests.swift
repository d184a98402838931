import SystemIO
import Testing

/// Programs that are run to completion.
struct ChildProgramTests {
  @Test func inputOutputAndExitCodeAreSeparate() throws {
    let ending = try ChildProgram.run(
      ["sh", "-c", "cat; echo \"$1\" >&2; exit 7", "sh", "two words"], input: Array("given".utf8))
    #expect(ending.code == 7)
    #expect(ending.output == Array("given".utf8))
    #expect(ending.errors == Array("two words\n".utf8))
  }

  @Test func muchOutputDoesNotBlock() throws {
    let ending = try ChildProgram.run(["head", "-c", "3000000", "/dev/zero"])
    #expect(ending.code == 0 && ending.output.count == 3_000_000)
  }

  @Test func aSignalIsReportedAsExitCode() throws {
    #expect(try ChildProgram.run(["sh", "-c", "kill -KILL $$"]).code == 128 + 9)
  }

  @Test func aMissingProgramIsAnError() throws {
    let error = #expect(throws: SystemError.self) {
      try ChildProgram.run(["no-such-program-anywhere"])
    }
    #expect(error?.isMissing == true && error?.operation == .run)
    #expect(throws: SystemError.self) { try ChildProgram.run([]) }
  }
}
