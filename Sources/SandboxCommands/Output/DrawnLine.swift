internal import Synchronization
internal import SystemIO

/// The line that a terminal shows of how far the work is: there is one standard error, so there is one
/// such line.
enum DrawnLine {
  private static let isDrawn = Mutex<Bool>(false)

  /// Draws it over what was drawn before. Where standard error is gone there is nobody to tell.
  static func draw(_ text: String) {
    isDrawn.withLock { isDrawn in
      put("\r\(text)\u{1B}[K")
      isDrawn = true
    }
  }

  /// Erases it and writes something else, which ends with a line or is nothing.
  static func past(_ write: () -> Void) {
    isDrawn.withLock { isDrawn in
      if isDrawn { put("\r\u{1B}[K") }
      isDrawn = false
      write()
    }
  }

  /// Erases it and writes a line to standard error.
  static func write(_ line: String) { past { put(line + "\n") } }

  private static func put(_ text: String) {
    let errors = StandardStream.errors()
    try? errors.write(text)
    try? errors.flush()
  }
}
