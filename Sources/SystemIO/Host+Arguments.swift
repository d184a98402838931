internal import Glibc

extension Host {
  /// The arguments of the program without its name, byte for byte.
  ///
  /// `CommandLine.arguments` replaces bytes that are not UTF-8 with U+FFFD and so would name other
  /// files.
  package static var arguments: [ByteString] {
    var words: [ByteString] = []
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let word = unsafe CommandLine.unsafeArgv[index] else { break }
      let bytes = unsafe UnsafeBufferPointer(start: word, count: strlen(word))
      words.append(unsafe ByteString(bytes.map { UInt8(bitPattern: $0) }))
    }
    return words
  }
}
