internal import Glibc

/// The locale in which libarchive converts names.
///
/// libarchive converts the names of an archive from the encoding that the archive claims into that
/// of the thread's locale. In the C locale, in which programs start, text that is not ASCII has no
/// name at all in some formats; in `C.UTF-8`, which is part of glibc since 2.35, UTF-8 stays
/// unchanged.
@safe final class TextLocale: Sendable {
  /// The locale `C.UTF-8`, or the thread's own if the C library lacks it.
  static let utf8 = TextLocale("C.UTF-8")
  /// The C locale: all bytes that are not ASCII have no meaning.
  static let plain = TextLocale("C")

  private nonisolated(unsafe) let locale: locale_t?

  private init(_ name: String) {
    unsafe locale = newlocale(1 << LC_CTYPE, name, nil)
  }

  /// Calls `body` while the thread has this locale.
  func with<Result>(_ body: () -> Result) -> Result {
    guard let locale = unsafe locale else { return body() }
    let former = unsafe uselocale(locale)
    defer { unsafe uselocale(former) }
    return body()
  }
}
