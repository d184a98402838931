internal import Synchronization
internal import SystemIO

/// The progress line on the terminal. There is only one, on standard error.
enum DrawnLine {
  private static let isDrawn = Mutex<Bool>(false)

  /// Draws the line over the previous one. Errors are ignored, since they cannot be reported.
  static func draw(_ text: String) {
    isDrawn.withLock { isDrawn in
      put("\r\(text)\u{1B}[K")
      isDrawn = true
    }
  }

  /// Erases the line and calls `write`, which writes whole lines or nothing.
  static func past(_ write: () -> Void) {
    isDrawn.withLock { isDrawn in
      if isDrawn { put("\r\u{1B}[K") }
      isDrawn = false
      write()
    }
  }

  /// Erases the line and writes another one to standard error.
  static func write(_ line: String) { past { put(line + "\n") } }

  private static func put(_ text: String) {
    let errors = StandardStream.errors()
    try? errors.write(text)
    try? errors.flush()
  }
}
