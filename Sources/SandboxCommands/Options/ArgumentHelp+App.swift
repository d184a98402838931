internal import ArgumentParser

extension ArgumentHelp {
  /// Returns the help of an option or argument for an app, with the names that select one.
  ///
  /// - Parameters:
  ///   - purpose: the effect of the option, for example `Back up only this app`.
  ///   - other: the name that selects an app besides its identifier and the last part of that.
  ///   - addition: an addition after the names, for example `may be repeated`.
  static func app(
    _ purpose: String, or other: String = "its display name", addition: String? = nil
  ) -> ArgumentHelp {
    let end = addition.map { "; \($0)." } ?? "."
    return ArgumentHelp(
      "\(purpose): its identifier (org.example.notebook), its last part (notebook), or \(other)\(end)",
      valueName: "app")
  }
}
