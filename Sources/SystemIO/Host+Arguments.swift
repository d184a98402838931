internal import Glibc

extension Host {
  /// The words that the program was called with, without its own name, byte for byte.
  ///
  /// `CommandLine.arguments` has U+FFFD in the place of what is not UTF-8, and so names other files.
  public static var arguments: [ByteString] {
    var words: [ByteString] = []
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let word = unsafe CommandLine.unsafeArgv[index] else { break }
      let bytes = unsafe UnsafeBufferPointer(start: word, count: strlen(word))
      words.append(unsafe ByteString(bytes.map { UInt8(bitPattern: $0) }))
    }
    return words
  }
}
