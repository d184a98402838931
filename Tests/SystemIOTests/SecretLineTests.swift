import CLinux
import Glibc
import Testing

/// The line that is read as the answer to a prompt for a secret.
struct SecretLineTests {
  /// Reads from a pipe that contains a text and has no writers.
  private func read(_ text: String, limit: Int) -> (result: Int, memory: [UInt8]) {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let bytes = Array(text.utf8)
    #expect(write(ends[1], bytes, bytes.count) == bytes.count)
    close(ends[1])
    defer { close(ends[0]) }
    var memory = [UInt8](repeating: 0, count: limit)
    let result = memory.withUnsafeMutableBytes {
      cl_read_secret_line(ends[0], $0.baseAddress, $0.count)
    }
    return (result, memory)
  }

  @Test(arguments: [("secret\nrest", 6), ("secret", 6), ("\n", 0), ("", 0)])
  func lineEndsWithANewlineOrTheInput(_ text: String, _ count: Int) {
    let (result, memory) = read(text, limit: 8)
    #expect(result == count)
    #expect(
      memory == Array(Array(text.utf8).prefix(count)) + [UInt8](repeating: 0, count: 8 - count))
  }

  @Test func partOfALineThatIsTooLongIsWiped() {
    let (result, memory) = read("secret\n", limit: 5)
    #expect(result == -Int(EMSGSIZE))
    #expect(memory.allSatisfy { $0 == 0 })
  }
}
