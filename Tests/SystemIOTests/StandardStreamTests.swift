import Glibc
import TestSupport
import Testing

@testable import SystemIO

struct StandardStreamTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("stream") }

  @Test func writesAreBuffered() throws {
    let file = try temporary.directory.create("out")
    do {
      let stream = StandardStream(file.raw, "the stream")
      try stream.write("one, ")
      try stream.write(bytes: [0xff, 0x0a])
      #expect(try file.status().size == 0)
      try stream.flush()
      #expect(try file.status().size == 7)
      try stream.flush()
      try stream.write("two")
      #expect(!stream.isTerminal && stream.columns == nil)
    }
    // The buffer is written when the stream is released.
    #expect(try temporary.read("out") == Array("one, ".utf8) + [0xff, 0x0a] + Array("two".utf8))
  }

  @Test func aFullBufferIsWritten() throws {
    let file = try temporary.directory.create("out")
    let stream = StandardStream(file.raw, "the stream")
    for _ in 0..<64 { try stream.write(bytes: [UInt8](repeating: 1, count: 1024)) }
    #expect(try file.status().size == 64 * 1024)
  }

  @Test func aFailureIsThrownOnce() throws {
    let file = try temporary.directory.create("out")
    let stream = StandardStream(file.raw, "the stream")
    try stream.write("lost")
    let plan = Faults.Plan(failing: [.write], at: 1, number: ENOSPC)
    let error = Faults.inject(plan) { failure { try stream.flush() } }
    #expect(error == SystemError(.write, "the stream", number: ENOSPC))
    try stream.flush()
    #expect(try file.status().size == 0)
  }
}
