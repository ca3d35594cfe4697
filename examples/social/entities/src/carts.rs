//! Carts: what a user means to buy.

use crate::ids::{CartId, ProductId, UserId};

keys::entity! {
    /// So many of a product are in a user's cart.
    ground CartItem "E-29" {
        key CartItemKey("USER#{UserId}#CART#{CartId}", "ITEM#{ProductId}") {
            /// Whose cart it is.
            user_id: UserId = "UserId",
            /// The cart.
            cart_id: CartId = "CartId",
            /// The product.
            product_id: ProductId = "ProductId",
        }
        index "GSI1" ("USER#{UserId}", "CART#{CartId}#ITEM#{ProductId}");
        attributes {
            /// How many.
            quantity: Option<i64> = "Quantity",
            /// Since when, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}
