package import SystemIO

extension Device {
  /// Returns the app with an identifier, or the only app whose identifier, last identifier
  /// component or display name matches, ignoring case.
  ///
  /// - Throws: `noApp` if there is none, `ambiguousApp` with the candidates if there are several.
  package func app(_ name: ByteString) throws(ModelError) -> App {
    if let app = apps.first(where: { $0.identifier.bytes == name }) { return app }
    let wanted = name.folded
    let candidates = apps.filter { app in
      app.identifier.bytes.folded == wanted
        || app.identifier.lastComponent.folded == wanted
        || app.displayName.map { $0.folded == wanted } ?? false
    }
    guard let app = candidates.first else {
      throw ModelError(
        .noApp, "find the app", on: name, reason: "this device has no such app",
        hint: "'sandboxctl apps' lists the apps")
    }
    if candidates.count > 1 {
      let names = candidates.map(\.identifier.description).joined(separator: ", ")
      throw ModelError(
        .ambiguousApp, "find the app", on: name, reason: "several apps match: \(names)",
        hint: "specify the full identifier")
    }
    return app
  }
}

extension ByteString {
  /// The name in lower case: in Unicode if it is valid UTF-8, otherwise for ASCII letters.
  package var folded: ByteString {
    if let text = utf8 { return ByteString(text.lowercased()) }
    return ByteString(
      bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 })
  }
}
