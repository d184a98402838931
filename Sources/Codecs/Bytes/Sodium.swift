internal import CSodium

/// The initialization of libsodium, which selects its code for this processor.
enum Sodium {
  /// Whether libsodium is initialized. That fails only without a source of random bytes.
  static let isReady = sodium_init() >= 0
}
